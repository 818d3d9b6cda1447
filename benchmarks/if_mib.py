"""The module that everybody who is compared reads: ours, as it is shipped."""

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
    """Metric (or the OID, for one without) and index of a variable."""
    column, _, index = oid.rpartition(".")
    return _metrics().get(column, column), index
