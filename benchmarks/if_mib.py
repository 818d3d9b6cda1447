"""The SNMP module that all candidates read: the built-in if_mib."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml

NAME = "if_mib"


@cache
def module() -> dict[str, Any]:
    text = (
        resources.files("poller.collectors.snmp")
        .joinpath(f"modules/builtin/{NAME}.yml")
        .read_text()
    )
    found: dict[str, Any] = yaml.safe_load(text)["modules"][NAME]
    return found


@cache
def roots() -> tuple[str, ...]:
    return tuple(module()["walk"])


@cache
def _metrics() -> dict[str, str]:
    return {metric["oid"]: metric["name"] for metric in module()["metrics"]}


@cache
def named(oid: str) -> tuple[str, str]:
    """Return the metric of a variable (its OID if it has none) and its index."""
    column, _, index = oid.rpartition(".")
    return _metrics().get(column, column), index
