"""Routes of notifications in words, for the command line and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def takes(route: Mapping[str, Any]) -> str:
    """`critical site:fra rules uplink-*`: what the route takes; its fields are a RouteItem's."""
    parts = [", ".join(route["severities"]), route["where"]]
    if route["rules"]:
        parts.append(f"rules {', '.join(route['rules'])}")
    if route["otherwise"]:
        parts.append("what no other route takes")
    return " ".join(part for part in parts if part) or "every alert"
