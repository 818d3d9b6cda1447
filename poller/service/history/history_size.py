"""How many bytes the history of a fleet takes, with the retention that is set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.history import written_sizes
from poller.domain.history import size_estimate
from poller.domain.history.size_estimate import FleetWrites, PartSize, Retention

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class HistorySize:
    """The parts of the history of so many devices, and what they are computed from."""

    devices: int
    fleet: FleetWrites
    parts: Sequence[PartSize]
    total_bytes: int


def history_size(services: Services, devices: int | None = None) -> HistorySize:
    """Return the size of the history of `devices` like those of the fleet; None: of the fleet.

    Raises StoreError.
    """
    settings = services.settings
    fleet = written_sizes.of_fleet(services.engine)
    retention = Retention(
        settings.readings_days, settings.history_5m_days, settings.history_1h_days
    )
    count = max(1, fleet.devices) if devices is None else devices
    parts = size_estimate.part_sizes(fleet, retention, count)
    return HistorySize(count, fleet, parts, size_estimate.total_bytes(parts))
