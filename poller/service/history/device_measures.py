"""Interfaces and measurements of a device, with their lines over a range: for its pages.

The newest poll of each target says what there is; only the lines of one page are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from poller import errors
from poller.db.history.series_of_range import SeriesReader
from poller.db.inventory.targets import Target
from poller.db.record.stored_readings import Stored
from poller.domain.access.actor import Actor
from poller.domain.metrics import series_identity
from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Key
from poller.domain.series import device_interfaces, measurements
from poller.domain.series.device_interfaces import Counted, Interface
from poller.domain.series.measurements import Measurement
from poller.domain.series.series_plan import Range, SeriesPlan
from poller.service.history import series_listing
from poller.service.record import reading_listing
from poller.service.record.reading_listing import ReadTime, TargetPoll

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.series.series_line import SeriesLine

Row = TypeVar("Row")

#: Rows of one page.
ROWS = 50


@dataclass(frozen=True, slots=True)
class InterfaceRow:
    """An interface of a target, and the lines of what it counts."""

    target: Target
    interface: Interface
    at_ms: int  # of the newest poll
    lines: Mapping[Counted, SeriesLine] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """A measurement of a target, and its line; None: nothing is known of the range."""

    target: Target
    measurement: Measurement
    at_ms: int
    line: SeriesLine | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Which rows: the text that they contain, and how many come before the page."""

    search: str = ""
    offset: int = 0
    limit: int = ROWS


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """A page of rows, how their lines were read, and the number of all that match."""

    rows: Sequence[Row]
    plan: SeriesPlan
    total: int
    targets: int  # that have such rows at all
    read_times: Sequence[ReadTime]  # of the polls that the rows are of


def interface_rows(
    services: Services, actor: Actor, device: str, part: Part, asked: Range, now_ms: int
) -> Rows[InterfaceRow]:
    """Return a page of the interfaces of a device. Raises NotFound, StoreError."""
    chosen = reading_listing.chosen_targets(services, actor, device)
    polls = reading_listing.latest(services, chosen)
    read = reading_listing.read_times(polls)
    every = list(_interfaces(polls))
    wanted = [row for row in every if row.interface.matches(part.search)]
    page = wanted[part.offset : part.offset + part.limit]
    plan = series_listing.plan_of(services, chosen, asked, now_ms)
    with_lines = [_with_lines(services, plan, rows) for rows in _by_target(page)]
    found = [row for rows in with_lines for row in rows]
    return Rows(found, plan, len(wanted), len({row.target.id for row in every}), read)


def interface_row(
    services: Services,
    actor: Actor,
    device: str,
    target: str,
    name: str,
    asked: Range,
    now_ms: int,
) -> tuple[InterfaceRow, SeriesPlan]:
    """Return one interface by its name. Raises NotFound."""
    chosen = reading_listing.chosen_targets(services, actor, device, target)
    every = _interfaces(reading_listing.latest(services, chosen))
    found = next((row for row in every if row.interface.key == name), None)
    if found is None:
        raise errors.NotFound(
            f'device "{device}" has no interface "{name}"',
            hint="the page Interfaces lists what it has",
        )
    plan = series_listing.plan_of(services, [found.target], asked, now_ms)
    [row] = _with_lines(services, plan, [found])
    return row, plan


def measurement_rows(
    services: Services, actor: Actor, device: str, part: Part, asked: Range, now_ms: int
) -> Rows[MeasurementRow]:
    """Return a page of the gauges and states of a device. Raises NotFound, StoreError."""
    chosen = reading_listing.chosen_targets(services, actor, device)
    polls = reading_listing.latest(services, chosen)
    read = reading_listing.read_times(polls)
    every = list(_measurements(polls))
    wanted = [row for row in every if row.measurement.matches(part.search)]
    page = wanted[part.offset : part.offset + part.limit]
    plan = series_listing.plan_of(services, chosen, asked, now_ms)
    lines = _lines_of(services, plan, [(row.target, row.measurement.key) for row in page])
    found = [
        MeasurementRow(row.target, row.measurement, row.at_ms, lines.get(_id(row))) for row in page
    ]
    return Rows(found, plan, len(wanted), len({row.target.id for row in every}), read)


def named_lines(
    services: Services,
    actor: Actor,
    device: str,
    target: str,
    selects: Callable[[Series], bool],
    asked: Range,
    most: int,
    now_ms: int,
) -> tuple[Target, Sequence[SeriesLine], SeriesPlan, Stored | None]:
    """Return the selected lines of one target, and its newest poll. Raises NotFound."""
    [chosen] = reading_listing.chosen_targets(services, actor, device, target)
    plan = series_listing.plan_of(services, [chosen], asked, now_ms)
    lines: list[SeriesLine] = []
    for line in SeriesReader(services.engine, plan, selects).lines(chosen):
        if len(lines) == most:
            break
        lines.append(line)
    [newest] = reading_listing.latest(services, [chosen])
    return chosen, lines, plan, newest.stored


def _interfaces(polls: Iterable[TargetPoll]) -> Iterator[InterfaceRow]:
    for poll in polls:
        if poll.stored is not None:
            by = series_identity.identity_option(poll.target.options)
            for each in device_interfaces.of_poll(poll.stored.readings, by):
                yield InterfaceRow(poll.target, each, poll.stored.at_ms)


def _measurements(polls: Iterable[TargetPoll]) -> Iterator[MeasurementRow]:
    rows = []
    for poll in polls:
        if poll.stored is not None:
            by = series_identity.identity_option(poll.target.options)
            for each in measurements.of_poll(poll.stored.readings, by):
                rows.append(MeasurementRow(poll.target, each, poll.stored.at_ms))
    order = list(measurements.Group)
    yield from sorted(rows, key=lambda row: order.index(row.measurement.group))


def _by_target(page: Sequence[InterfaceRow]) -> Iterator[list[InterfaceRow]]:
    ids = dict.fromkeys(row.target.id for row in page)
    for target_id in ids:
        yield [row for row in page if row.target.id == target_id]


def _with_lines(
    services: Services, plan: SeriesPlan, rows: Sequence[InterfaceRow]
) -> list[InterfaceRow]:
    """Return the rows of one target with their lines."""
    target = rows[0].target
    wanted = {
        (metric, row.interface.known_by): (place, role)
        for place, row in enumerate(rows)
        for role, metric in row.interface.counters.items()
    }
    found: list[dict[Counted, SeriesLine]] = [{} for _ in rows]
    reader = SeriesReader(services.engine, plan, series_identity.with_keys(wanted))
    for line in reader.lines(target):
        at = wanted.get(line.key)
        if at is not None:
            place, role = at
            found[place][role] = line
    return [
        InterfaceRow(row.target, row.interface, row.at_ms, lines)
        for row, lines in zip(rows, found, strict=True)
    ]


def _lines_of(
    services: Services, plan: SeriesPlan, wanted: Sequence[tuple[Target, Key]]
) -> dict[tuple[int, Key], SeriesLine]:
    found: dict[tuple[int, Key], SeriesLine] = {}
    keys: dict[int, set[Key]] = {}
    targets: dict[int, Target] = {}
    for target, key in wanted:
        keys.setdefault(target.id, set()).add(key)
        targets[target.id] = target
    for target_id, of_target in keys.items():
        reader = SeriesReader(services.engine, plan, series_identity.with_keys(of_target))
        for line in reader.lines(targets[target_id]):
            if line.key in of_target:
                found[target_id, line.key] = line
    return found


def _id(row: MeasurementRow) -> tuple[int, Key]:
    return row.target.id, row.measurement.key
