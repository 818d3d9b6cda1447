"""A table of a live page: its columns, and its rows as texts by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.presentation.health import Punctuality, Tone
from poller.service.fleet.fleet_picture import FleetPicture


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` sets the alignment: text, number, time, or device for DEVICE or DEVICE/TARGET, which
    becomes a link. `where` is a filter, which becomes a link to the devices that match.
    """

    id: str
    title: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class TableRow:
    """Texts and tones by column id. The key is stable, so that a live page recognizes the row."""

    key: str
    texts: Mapping[str, str]
    tones: Mapping[str, Tone]


@dataclass(frozen=True, slots=True)
class Shown:
    """The data that the tables are made from."""

    overview: Overview
    fleet: FleetPicture = field(default_factory=FleetPicture)
    times: Mapping[str, QueueTimes] = field(default_factory=dict)
    punctuality: Punctuality = Punctuality.UNKNOWN


@dataclass(frozen=True, slots=True)
class Table:
    """A table. `empty` says why it has no row, `total` how many rows there are in all."""

    id: str
    title: str
    empty: Callable[[Shown], str]
    limit: int  # of rows
    columns: Sequence[Column]
    rows: Callable[[Shown], Iterator[TableRow]]
    total: Callable[[Shown], int] | None = None  # None: the rows are all


def always(text: str) -> Callable[[Shown], str]:
    """Return a reason that is always the same."""
    return lambda _: text
