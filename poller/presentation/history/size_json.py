"""The size of history as JSON. Fields may be added, never removed."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from poller.domain.history.size_estimate import FleetWrites, PartSize


class PartItem(BaseModel):
    """One part of history, or all of them. `measured`: from rows of this fleet."""

    part: str
    kept_days: float | None
    bytes_per_sample: float | None
    bytes_per_device_day: int
    bytes: int
    measured: bool


class WritingFleet(BaseModel):
    """The fleet that the sizes are computed from."""

    devices: int
    targets: int
    polls_per_day: float
    samples_per_poll: float


def items(parts: Sequence[PartSize], total_bytes: int) -> list[PartItem]:
    """Return a line for each part, and one for all of them."""
    lines = [_part(part) for part in parts]
    total = PartItem(
        part="total",
        kept_days=None,
        bytes_per_sample=None,
        bytes_per_device_day=round(sum(part.bytes_a_device_day for part in parts)),
        bytes=total_bytes,
        measured=all(part.is_measured for part in parts),
    )
    return [*lines, total]


def _part(part: PartSize) -> PartItem:
    return PartItem(
        part=part.name,
        kept_days=round(part.kept_days, 3),
        bytes_per_sample=round(part.bytes_a_sample, 3),
        bytes_per_device_day=round(part.bytes_a_device_day),
        bytes=part.total_bytes,
        measured=part.is_measured,
    )


def fleet(writes: FleetWrites) -> WritingFleet:
    """Return what the sizes are computed from."""
    return WritingFleet(
        devices=writes.devices,
        targets=writes.targets,
        polls_per_day=round(writes.polls_a_day, 1),
        samples_per_poll=round(writes.values_a_poll, 1),
    )
