"""How many bytes history takes, from what a fleet writes now.

A part that nobody has written yet is estimated from a simulated day of interface counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.sizing import measured_figures as figures

#: A fresh poll becomes a part of a block after an hour or two.
FRESH_DAYS = 1.6 / 24
#: Polls of a block, about.
_BLOCK_POLLS = 60
#: What is assumed of a fleet that has stored nothing: a switch of four ports, once a minute.
_ASSUMED_VALUES = 154.0
_ASSUMED_POLLS = 1440.0


class Written(NamedTuple):
    """Rows of a table that were looked at, the newest ones, and the bytes of their data."""

    rows: int = 0
    data_bytes: int = 0
    polls: int = 0
    values: int = 0


@dataclass(frozen=True, slots=True)
class FleetWrites:
    """The size of a fleet, its plan, and samples of the tables that it writes."""

    devices: int
    targets: int
    polls_a_day: float
    fresh: Written
    blocks: Written
    five_minutes: Written
    hours: Written
    assumed_values: float = _ASSUMED_VALUES  # of a poll, if none is stored

    @property
    def values_a_poll(self) -> float:
        """The mean number of values of a poll."""
        if not self.fresh.polls:
            return self.assumed_values
        return self.fresh.values / self.fresh.polls


class Retention(NamedTuple):
    """How long each part is kept, in days."""

    raw_days: float
    five_minutes_days: float
    hours_days: float


@dataclass(frozen=True, slots=True)
class PartSize:
    """The size of one part of the history of some devices."""

    name: str
    kept_days: float
    bytes_a_sample: float  # of the polls that the part stands for
    bytes_a_device_day: float
    total_bytes: int
    is_measured: bool


def part_sizes(fleet: FleetWrites, retention: Retention, devices: int) -> list[PartSize]:
    """Return the size of each part for so many devices of the kind that the fleet has."""
    fleet_devices = max(1, fleet.devices)
    targets = max(1.0, fleet.targets / fleet_devices)
    polls = fleet.polls_a_day / fleet_devices or _ASSUMED_POLLS
    values = fleet.values_a_poll

    row_bytes = figures.ROW_BYTES.value
    block_bytes = figures.BLOCK_VALUE_BYTES.value * values + row_bytes / _BLOCK_POLLS
    if fleet.blocks.polls:
        of_rows = fleet.blocks.data_bytes + row_bytes * fleet.blocks.rows
        block_bytes = of_rows / fleet.blocks.polls
    five_minutes = _row_bytes(fleet.five_minutes, figures.FIVE_MINUTES_VALUE_BYTES.value * values)
    hours = _row_bytes(fleet.hours, figures.HOUR_VALUE_BYTES.value * values)
    fresh = figures.FRESH_VALUE_BYTES.value * values + row_bytes
    parts = (
        ("fresh polls", FRESH_DAYS, polls * fresh, fleet.fresh),
        ("raw", retention.raw_days, polls * block_bytes, fleet.blocks),
        ("5 minutes", retention.five_minutes_days, targets * five_minutes, fleet.five_minutes),
        ("1 hour", retention.hours_days, targets * hours, fleet.hours),
    )
    return [
        PartSize(
            name=name,
            kept_days=days,
            bytes_a_sample=bytes_a_day / (polls * values),
            bytes_a_device_day=bytes_a_day,
            total_bytes=round(bytes_a_day * days * devices),
            is_measured=written.rows > 0,
        )
        for name, days, bytes_a_day, written in parts
    ]


def total_bytes(parts: Sequence[PartSize]) -> int:
    """Return the size of all parts."""
    return sum(part.total_bytes for part in parts)


def _row_bytes(written: Written, estimate: float) -> float:
    """Return the mean size of a row, or the estimate of a table without rows."""
    data_bytes = written.data_bytes / written.rows if written.rows else estimate
    return data_bytes + figures.ROW_BYTES.value
