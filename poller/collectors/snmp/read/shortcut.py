"""The numbers-only read: between two full reads a poll requests only values that change.

Names, labels and types come from the last full read. A shortcut is dropped as soon as a row is
not where it was.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from poller import errors
from poller.collectors import api
from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.metrics.reading_plan import Plan
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read import change_detection, lane, route
from poller.collectors.snmp.read.change_detection import PartRead, Signals, TableProbe
from poller.collectors.snmp.read.lane import Lane
from poller.collectors.snmp.read.poll_links import ParallelWalkers
from poller.collectors.snmp.read.replay import Replay
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.resting_rows import InterfaceNumbers, Rest
from poller.collectors.snmp.read.route import Capacity, Route, RowRange
from poller.collectors.snmp.read.walker import Walker
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import ReadingSet

#: Routes and numbers of interfaces, cached for all devices of a module set together.
_MAX_ROUTES = 1_024


class FullRead(NamedTuple):
    """Everything that one poll read from a device."""

    reads: list[PartRead]
    failures: list[api.PartFailed]
    #: Values of the change signals, by OID.
    signals: Mapping[str, Value]

    @property
    def rows(self) -> list[Row]:
        """Rows of all parts."""
        rows: list[Row] = []
        for read in self.reads:
            rows += read.rows
        return rows

    @property
    def shape(self) -> Hashable:
        """The OIDs that were read. Devices of one kind have the same."""
        hashes = [hash(tuple([oid for oid, _ in read.rows])) for read in self.reads]
        return (*(read.part for read in self.reads), *hashes)


@dataclass(slots=True)
class Shortcut:
    """The numbers-only read of one target."""

    route: Route
    #: Makes readings of the route's rows.
    plan: Plan
    #: The plan of the full read that the route was made from.
    full_plan: Plan
    capacity: Capacity
    #: OIDs of the change signals: the first rows of the route.
    signal_oids: tuple[str, ...]
    #: Last values of the change signals.
    signals: Signals
    #: The refresh period in which the shortcut may be used.
    period: int
    #: The lean read, once it is proven; None if nothing rests.
    lane: Lane | None = None
    #: A resting value moved in this period.
    restless: bool = False
    #: The prepared requests of the route.
    replay: Replay | None = None
    #: No replay has failed in this period.
    replayable: bool = True

    def read_lane(self, oids_hash: int, values: Sequence[Value], now: float) -> ReadingSet | None:
        """Readings of the lean route's rows; None, and no lane any more, if a state has changed."""
        readings = self.lane.read(oids_hash, values) if self.lane is not None else None
        if readings is not None:
            signals = Signals(now, tuple(values[: len(self.signal_oids)]))
            if not change_detection.has_changed(self.signal_oids, self.signals, signals):
                self.signals = signals
                return readings
        self.lane = None
        return None

    def read(self, oids_hash: int, values: Sequence[Value], now: float) -> ReadingSet | None:
        """Readings of the route's rows; None if anything but numbers has changed."""
        if len(values) != len(self.route.positions):
            return None

        signals = Signals(now, tuple(values[: len(self.signal_oids)]))
        readings = self.plan.read(oids_hash, values)
        if readings is None:
            return None
        if change_detection.has_changed(self.signal_oids, self.signals, signals):
            return None
        self.signals = signals
        self._prove_lane(readings)
        return readings

    def _prove_lane(self, readings: ReadingSet) -> None:
        """Use the lane from the next poll on, or drop it."""
        if self.lane is None:
            return
        if self.lane.has_other_states(readings.values):
            self.lane = None
        elif not self.lane.prove(readings.values):
            self.lane = None
            self.restless = True

    def fits(self, full_plan: Plan, capacity: Capacity, signal_oids: tuple[str, ...]) -> bool:
        """Whether a route for these would be the same one."""
        if self.full_plan != full_plan or self.capacity != capacity:
            return False
        return self.signal_oids == signal_oids


def make(
    full_read: FullRead,
    module_set: ModuleSet,
    full_plan: Plan,
    sizes: RequestSizes,
    now: float,
    period: int,
    previous: Shortcut | None,
    values: Sequence[float],
    rest: Rest = Rest.NOTHING,
) -> Shortcut | None:
    """The shortcut for the following polls, after a full read. None if no number was read.

    `values` are the readings of that read.
    """
    capacity = Capacity(sizes.rows_per_response, sizes.oids_per_get)
    signal_oids = tuple(full_read.signals)
    signals = Signals(now, tuple(full_read.signals.values()))
    routes = _Routes(full_read, module_set, full_read.shape, signal_oids, capacity)

    if previous is not None and previous.fits(full_plan, capacity, signal_oids):
        made = replace(previous, signals=signals, period=period, restless=False, replayable=True)
    else:
        chosen = routes.find()
        if not chosen.positions:
            return None
        plan = _narrowed_plan(full_plan, full_read, chosen)
        made = _shortcut(chosen, plan, full_plan, capacity, signal_oids, signals, period)

    made.lane = _lane(made, routes, values, rest)
    return made


def _lane(whole: Shortcut, routes: _Routes, values: Sequence[float], rest: Rest) -> Lane | None:
    """The lean read beside a shortcut; None if nothing rests, or too little to pay."""
    rows = routes.full_read.rows
    found = routes.interface_numbers(rows).resting(rows, rest)
    if found is None:
        return None
    lean = routes.find(found.resting)
    most = lane.WORTHWHILE * route.count_requests(whole.route, whole.capacity)
    if route.count_requests(lean, whole.capacity) > most:
        return None
    return lane.make(lean, rows, whole.full_plan, found, values)


def _shortcut(
    chosen: Route,
    plan: Plan,
    full_plan: Plan,
    capacity: Capacity,
    signal_oids: tuple[str, ...],
    signals: Signals,
    period: int,
) -> Shortcut:
    return Shortcut(
        route=chosen,
        plan=plan,
        full_plan=full_plan,
        capacity=capacity,
        signal_oids=signal_oids,
        signals=signals,
        period=period,
    )


def _narrowed_plan(full_plan: Plan, full_read: FullRead, chosen: Route) -> Plan:
    """The part of the full plan that needs only the route's rows."""
    rows = full_read.rows
    oids = list(chosen.get)
    for at in chosen.positions[len(oids) :]:
        oids.append(rows[at][0])
    values = [rows[at][1] if at >= 0 else None for at in chosen.positions]
    return full_plan.narrowed(oids, values, chosen.positions)


class _Routes(NamedTuple):
    """Routes and resting rows, which devices with the same rows share."""

    full_read: FullRead
    module_set: ModuleSet
    shape: Hashable  # of the full read
    signal_oids: tuple[str, ...]
    capacity: Capacity

    def find(self, resting: frozenset[str] = frozenset()) -> Route:
        """The route without the resting rows."""
        key = (self.signal_oids, self.capacity, resting, self.shape)
        cached: Route | None = self.module_set.routes.get(key)
        if cached is None:
            reads, module_set = self.full_read.reads, self.module_set
            cached = route.find(reads, module_set, self.signal_oids, self.capacity, resting)
            _keep(module_set, key, cached)
        return cached

    def interface_numbers(self, rows: Sequence[Row]) -> InterfaceNumbers:
        """The numbers of interface tables in the rows."""
        key = (InterfaceNumbers, self.shape)
        cached: InterfaceNumbers | None = self.module_set.routes.get(key)
        if cached is None:
            cached = InterfaceNumbers(rows, self.module_set)
            _keep(self.module_set, key, cached)
        return cached


def _keep(module_set: ModuleSet, key: Hashable, value: Route | InterfaceNumbers) -> None:
    if len(module_set.routes) >= _MAX_ROUTES:
        module_set.routes.clear()
    module_set.routes[key] = value


class RouteFailed(Exception):
    """A route could not be followed to its end. `parts` are the silent ones, as far as known."""

    def __init__(self, parts: Sequence[str], error: errors.DeviceError) -> None:
        super().__init__(str(error))
        self.parts = parts
        self.error = error


async def follow(chosen: Route, walkers: ParallelWalkers) -> list[Row]:
    """The rows of a route in its order, which may differ from the expected ones.

    No rows at all if an empty table has rows now. Raises RouteFailed, or the error of a device that
    does not respond. GETs go last, since one silent object silences the whole GET.
    """
    steps: list[RowRange | None] = [*chosen.ranges, None]

    async def read(walker: Walker, step: RowRange | None) -> list[Row]:
        try:
            if step is None:
                return await walker.get(chosen.get, present=True)
            count = step.rows + step.ends
            return await walker.walk_range(step.cursor, step.root, count)
        except api.DeviceError as error:
            answered_before = walkers.answered
            if not await still_responds(error, walker, walkers):
                raise
            parts = _silent_parts(error, chosen.get_parts if step is None else (step.part,))
            cause = error if answered_before else walker.timeout_error()
            raise RouteFailed(parts, cause) from None

    *walked, got = await walkers.map(read, steps)
    for rows in walked:
        got += rows
    empty = await _are_empty(chosen.probes, walkers.first)
    return got if empty else []


async def replayed(prepared: Replay, chosen: Route, walkers: ParallelWalkers) -> list[Value] | None:
    """The values of a route in its order, by its prepared requests.

    None if a response was missing or not as expected: the route must be followed. Raises the error
    of a device that does not respond.
    """
    walker = walkers.first
    answers = await walker.replay(prepared.requests, walkers.window)
    if answers is None or not await _are_empty(chosen.probes, walker):
        return None
    values: list[Value] = []
    for got in answers[prepared.walks :]:
        values += got
    for walked in answers[: prepared.walks]:
        values += walked
    return values


async def _are_empty(probes: Sequence[TableProbe], walker: Walker) -> bool:
    """Whether all probed tables are still empty. An agent that does not answer counts as a yes."""
    at = 0
    while at < len(probes) and walker.sizes.multi_get_next:
        some = probes[at : at + walker.sizes.oids.now]
        try:
            names = await walker.next_oids([probe.cursor for probe in some])
        except errors.DeviceError:
            names = ()
        if any(probe.hits(name) for probe, name in zip(some, names, strict=False)):
            return False
        at += len(names)
        walker.sizes.multi_get_next = bool(names)
    return True


async def still_responds(
    error: errors.DeviceError, walker: Walker, walkers: ParallelWalkers
) -> bool:
    """Whether the device answers at all after this error: only one part may be silent."""
    if walkers.answered:
        return True
    return isinstance(error, api.DeviceTimeout) and await walker.responds()


def _silent_parts(error: errors.DeviceError, parts: Sequence[str]) -> Sequence[str]:
    """The parts known to be silent. A GET of several parts does not show which one it was."""
    if isinstance(error, api.DeviceTimeout) and len(parts) == 1:
        return parts
    return ()
