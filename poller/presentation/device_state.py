"""How does a device stand? Who it is and, for each of its targets, what the board remembers and where it waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory import devices
from poller.state.board.breakers import BoardTarget, Breakers

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class Standing:
    """`seen` has no target that the board does not know; `trouble` says why the board could not be asked."""

    address: str = ""
    site: str = ""
    enabled: bool = True
    now_ms: int = 0  # by the cluster's clock
    seen: Mapping[int, BoardTarget] = field(default_factory=dict)
    trouble: str = ""


def read(services: Services, device: str, targets: Sequence[int]) -> Standing:
    """One statement and three words with Redis, however many targets it has. Raises NotFound, StoreError (SQL)."""
    found = devices.show(services.engine, device)
    try:
        now_ms = services.board.now_ms()
        seen = Breakers(services.board).show(targets, now_ms)
    except errors.StoreError as error:
        return Standing(found.address, found.site, found.enabled, trouble=str(error))
    return Standing(found.address, found.site, found.enabled, now_ms, seen)
