"""The sink contract: takes the readings of many polls at once, or raises StoreError."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from poller.domain.inventory.api_version import Served, Stated
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet

API_VERSION = 1

#: What this release serves; the promise is that of collectors, see `poller.collectors.api.SERVED`.
SERVED: Mapping[int, Served] = {1: Served()}


@dataclass(frozen=True, slots=True)
class Sample:
    """The readings of one poll."""

    target: PollTarget
    at_ms: int
    readings: ReadingSet


@dataclass(frozen=True, slots=True)
class Stores:
    """What the platform lends a sink: its own SQL engine and Redis client, and its settings by name."""

    engine: Any
    redis: Any
    settings: Any


@runtime_checkable
class Sink(Protocol):
    """Made once per worker process with `Sink(stores)`; `write` is called by one thread, one call after another."""

    name: ClassVar[str]

    @property
    def api_version(self) -> Stated:
        """`1`, or `(1, 2)`: the first and the last version it works with. A plain attribute of the class will do."""
        ...

    def write(self, samples: Sequence[Sample]) -> None:
        """Store them: all or, raising StoreError, none that a retry would double.

        StoreUnavailable says that the store is away: the same samples come again, before any later ones. Any other
        error says that it does not want *these*: they come again a few times, and are then set aside. Who needs more
        than a second is taken for away, but may still succeed. Samples may be hours old after an outage.
        """
        ...

    def close(self) -> None: ...
