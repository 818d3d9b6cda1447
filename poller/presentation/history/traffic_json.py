"""The report of traffic as rows, schema `poller.report.traffic/1`: bits a second, and octets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from poller.presentation.history import spreadsheet_cells
from poller.presentation.history.series_csv import labels_text

if TYPE_CHECKING:
    from poller.domain.series.traffic import InterfaceTraffic

SCHEMA = "poller.report.traffic/1"
_MINUTE_MS = 60_000


class TrafficItem(BaseModel):
    """One direction of an interface over the month."""

    device: str
    target: str
    interface: str
    labels: dict[str, str]
    direction: str = Field(description="in or out, seen from the device.")
    p95_bits_per_second: float | None = Field(
        description="The 95th percentile of the rates of five minutes; of an hour with `1h`."
    )
    mean_bits_per_second: float | None
    max_bits_per_second: float | None
    total_octets: float
    speed_bits_per_second: float | None = Field(description="Of the link; null: unknown.")
    p95_utilisation: float | None = Field(description="Share of the speed, 0 to 1.")
    max_utilisation: float | None
    unknown_minutes: float = Field(description="Without any rate: no poll, or a reset.")
    averaged_minutes: float = Field(description="With an average over missing polls only.")
    resolution: str = Field(description="raw, 5m or 1h: the history that was read.")


COLUMNS = tuple(TrafficItem.model_fields)
#: Texts of people and devices, which must be no formula of a spreadsheet.
_NAMES = ("device", "target", "interface")


def items(
    device: str, target: str, resolution: str, interface: InterfaceTraffic
) -> Iterator[TrafficItem]:
    """Yield a row for each direction of an interface."""
    speed = interface.octets_per_s
    for direction, found in interface.directions.items():
        yield TrafficItem(
            device=device,
            target=target,
            interface=interface_name(interface),
            labels=dict(interface.labels),
            direction=direction.value,
            p95_bits_per_second=_bits(found.p95),
            mean_bits_per_second=_bits(found.mean),
            max_bits_per_second=_bits(found.highest),
            total_octets=found.total,
            speed_bits_per_second=_bits(speed),
            p95_utilisation=interface.utilisation(found.p95),
            max_utilisation=interface.utilisation(found.highest),
            unknown_minutes=_minutes(found.unknown_ms),
            averaged_minutes=_minutes(found.averaged_ms),
            resolution=resolution,
        )


def interface_name(interface: InterfaceTraffic) -> str:
    """Return the text that people know an interface by: `eth0`."""
    return " ".join(text for _, text in interface.known_by)


def csv_lines(rows: Iterable[TrafficItem]) -> Iterator[str]:
    """Yield the lines of a CSV file, the heading first."""
    yield ",".join(COLUMNS) + "\r\n"
    for row in rows:
        fields = row.model_dump()
        for name in _NAMES:
            fields[name] = spreadsheet_cells.written(fields[name])
        fields["labels"] = labels_text(row.labels)
        text = io.StringIO()
        csv.writer(text).writerow(fields.values())
        yield text.getvalue()


def _bits(octets: float | None) -> float | None:
    return None if octets is None else 8 * octets


def _minutes(ms: int) -> float:
    return round(ms / _MINUTE_MS, 2)
