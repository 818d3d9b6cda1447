"""A neighbour of a simulated device, as LLDP or CDP tells it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class LinkProtocol(enum.StrEnum):
    """How a device knows its neighbour."""

    LLDP = "lldp"
    CDP = "cdp"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One neighbour as a device sees it. `mac` is the first one of the neighbour."""

    local_port: int  # ifIndex
    name: str
    mac: int
    port: str  # of the neighbour
    address: str
    by: LinkProtocol = LinkProtocol.LLDP

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Neighbour:
        """Rebuild a neighbour from `dataclasses.asdict`."""
        return cls(**{**fields, "by": LinkProtocol(fields["by"])})
