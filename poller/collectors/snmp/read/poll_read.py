"""What one poll reads: the numbers only while nothing else has changed, otherwise everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.collectors import api
from poller.collectors.memory.error_frames import drop_frames
from poller.collectors.memory.keyed_values import NO_VALUES, KeyedValues
from poller.collectors.snmp.metrics.label_text import value_text
from poller.collectors.snmp.metrics.reading_plan import Plan, Shapes
from poller.collectors.snmp.modules import device_table
from poller.collectors.snmp.modules.device_table import Choose, ChosenModules
from poller.collectors.snmp.modules.module_model import WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet, Part
from poller.collectors.snmp.read import change_detection, replay, shortcut
from poller.collectors.snmp.read.change_detection import PartRead
from poller.collectors.snmp.read.lane import Lane
from poller.collectors.snmp.read.poll_links import ParallelWalkers
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.resting_rows import Rest
from poller.collectors.snmp.read.shortcut import FullRead, RouteFailed, Shortcut
from poller.collectors.snmp.read.walker import Walked, Walker
from poller.collectors.snmp.wire.value_types import Value

#: Where every poll reads everything, the device is identified again after this time.
CHOICE_AGE_S = 3600.0
#: After this many refresh periods a target whose resting values moved is tried again.
REST_AGAIN = 8
#: The part of change signals that are read on their own.
_SIGNALS = Part("signals")


@dataclass(slots=True)
class TargetMemory:
    """The state of an SNMP target that a worker keeps between its polls."""

    #: The modules that everything below was learned with.
    module_set: ModuleSet
    walk_settings: WalkSettings
    sizes: RequestSizes
    shapes: Shapes = field(default_factory=Shapes)
    shortcut: Shortcut | None = None
    #: Rows of the last full read.
    rows: int = 0
    #: Change signals of the last complete full read.
    signals: KeyedValues = NO_VALUES
    #: Instant of that read, on the loop's clock.
    signals_mono: float = 0.0
    #: The modules that suit the device, for a target that names none.
    chosen: ChosenModules | None = None
    #: gufo cannot read this device.
    codec_only: bool = False
    #: The last poll was slow.
    slow: bool = False
    #: What may rest: less after a resting value moved.
    rest: Rest = Rest.PORTS


class PollResult(NamedTuple):
    """Readings, and the parts that failed although the device answered others."""

    items: list[api.Yielded]
    complete: bool


class TargetModules(NamedTuple):
    """The modules of a target: named by its options, or chosen by the identity of its device."""

    names: tuple[str, ...]
    select: Callable[[tuple[str, ...]], ModuleSet]
    choose: Choose


async def read(
    walkers: ParallelWalkers,
    modules: TargetModules,
    memory: TargetMemory,
    now: float,
    period: int | None,
    rests: bool = False,
    is_behind: bool = False,
) -> PollResult:
    """Read one poll. `period` is the refresh period, None if every poll reads everything.

    `rests`: rows whose values stand still may be left out. `is_behind`: a refresh can wait.
    Raises DeviceErrors.
    """
    previous = memory.shortcut
    memory.shortcut = None  # until it works once more
    failed = None
    if previous is not None and not change_detection.needs_refresh(
        previous.period, period, is_behind
    ):
        try:
            readings = await _read_numbers(previous, walkers, now)
        except RouteFailed as error:
            failed = error
        else:
            if readings is not None:
                memory.shortcut = previous
                return PollResult(_yielded(readings, previous.plan), complete=True)

    memory.sizes.response_capacity = 0
    memory.sizes.multi_get_next = True
    module_set = await _module_set(walkers, modules, memory, now, reuse=period is None)
    full_read = await read_everything(module_set, walkers, failed)
    before = memory.signals.to_dict()
    if change_detection.names_expired(before, memory.signals_mono, full_read.signals, now):
        memory.shapes.forget_labels()
    items, plan = _mapped(full_read, module_set, memory)

    repeatable = _remember(full_read, memory, now)
    # Filters choose rows by the values of a column, so they need a full read every time.
    if plan is not None and repeatable and period is not None and not module_set.filter_parts:
        values = items[0].values if isinstance(items[0], api.ReadingSet) else ()
        memory.rest = _next_rest(memory.rest, previous, period)
        rest = memory.rest if rests else Rest.NOTHING
        memory.shortcut = shortcut.make(
            full_read, module_set, plan, memory.sizes, now, period, previous, values, rest
        )
    return PollResult(items, complete=not full_read.failures)


async def _read_numbers(
    previous: Shortcut, walkers: ParallelWalkers, now: float
) -> api.ReadingSet | None:
    """Readings along the lean route, else along the whole one; None if more than numbers changed.

    Raises RouteFailed and DeviceErrors.
    """
    lane = previous.lane
    if lane is not None and lane.proven:
        found = await _route_values(lane, previous, walkers)
        readings = previous.read_lane(*found, now)
        if readings is not None:
            return readings
    found = await _route_values(previous, previous, walkers)
    return previous.read(*found, now)


async def _route_values(
    read: Shortcut | Lane, previous: Shortcut, walkers: ParallelWalkers
) -> tuple[int, Sequence[Value]]:
    """Hash of the OIDs and values of a route's rows, by prepared requests or by following it.

    Raises RouteFailed and DeviceErrors.
    """
    walker = walkers.first
    replays = previous.replayable and walker.replays
    if replays and read.replay is not None and read.replay.fits(walker.sizes):
        values = await shortcut.replayed(read.replay, read.route, walkers)
        if values is not None:
            return read.replay.oids_hash, values
        previous.replayable = replays = False  # it would fail again, and cost its requests

    rows = await shortcut.follow(read.route, walkers)
    if not rows:
        return 0, ()
    if replays:
        read.replay = replay.make(read.route, rows, walker.sizes)
    oids, found = zip(*rows, strict=True)
    return hash(oids), found


def _next_rest(rest: Rest, previous: Shortcut | None, period: int) -> Rest:
    """Let less rest after a resting value moved; try everything again once in a while."""
    if period % REST_AGAIN == 0:
        return Rest.PORTS
    if previous is not None and previous.restless:
        return Rest(max(Rest.NOTHING, rest - 1))
    return rest


def _remember(full_read: FullRead, memory: TargetMemory, now: float) -> bool:
    """Store the signals and size of a full read. True if the next poll may rely on it."""
    complete = not full_read.failures
    if complete:
        memory.signals = KeyedValues.of(full_read.signals)
        memory.signals_mono = now

    row_count = len(full_read.rows)
    shrunk = row_count < memory.rows  # a busy agent may cut a table short: read everything again
    memory.rows = row_count
    return complete and not shrunk


async def _module_set(
    walkers: ParallelWalkers, modules: TargetModules, memory: TargetMemory, now: float, reuse: bool
) -> ModuleSet:
    """The named modules, or those that suit the device's sysObjectID and sysDescr.

    `reuse`: every poll reads everything, so the last choice is reused for `CHOICE_AGE_S`.
    """
    if modules.names:
        return modules.select(modules.names)

    last = memory.chosen
    if last is not None and reuse and now - last.at < CHOICE_AGE_S:
        return modules.select(last.names)
    ((object_id, descr),) = await walkers.map(_identity, (None,))
    chosen = ChosenModules(modules.choose(object_id, descr), now)
    if last is not None and chosen.names != last.names:
        memory.shapes = Shapes()
    memory.chosen = chosen
    return modules.select(chosen.names)


async def _identity(walker: Walker, _: None) -> tuple[str, str]:
    """sysObjectID and sysDescr as texts."""
    values = dict(await walker.get((device_table.SYS_OBJECT_ID, device_table.SYS_DESCR)))
    object_id = values.get(device_table.SYS_OBJECT_ID)
    descr = values.get(device_table.SYS_DESCR)
    return (
        value_text(object_id, "DisplayString"),
        value_text(descr, "DisplayString"),
    )


async def read_everything(
    module_set: ModuleSet, walkers: ParallelWalkers, failed: RouteFailed | None = None
) -> FullRead:
    """Read every part, with the change signals in the first GET.

    Parts that were silent on the route a moment ago (`failed`) are not requested again. Raises the
    first part's error if the device does not respond at all.
    """
    wanted, filter_failures = await _filtered_parts(module_set, walkers)
    parts = wanted if wanted and wanted[0].get else (_SIGNALS, *wanted)
    signals = change_detection.signal_oids(module_set.parts)
    extra = tuple(name for name in signals if name not in parts[0].get)

    async def read_part(walker: Walker, part: Part) -> Walked:
        if failed is not None and part.name in failed.parts:
            return Walked(error=failed.error)
        more = extra if part is parts[0] else ()
        walked = await _read_part(walker, part, more)
        if walked.error is None:
            return walked
        if not walkers.answered:  # the device does not respond: skip the other parts
            raise walked.error
        if not more or not isinstance(walked.error, api.DeviceTimeout):
            return walked
        # A silent signal must not silence the scalars of its GET.
        uptime = tuple(name for name in more if name == change_detection.UPTIME)
        return await _read_part(walker, part, uptime)

    results = await walkers.map(read_part, parts)
    full_read = _full_read(parts, results, signals, extra)
    full_read.failures.extend(filter_failures)
    return full_read


async def _filtered_parts(
    module_set: ModuleSet, walkers: ParallelWalkers
) -> tuple[Sequence[Part], list[api.PartFailed]]:
    """The parts to read, by the filter columns. An unreadable column filters nothing."""

    async def read_column(walker: Walker, part: Part) -> Walked:
        walked = await walker.walk(part.walk)
        error = walked.error
        if error is not None and not await shortcut.still_responds(error, walker, walkers):
            raise error
        return walked

    if not module_set.filter_parts:
        return module_set.parts, []

    columns = {}
    failures = []
    results = await walkers.map(read_column, module_set.filter_parts)
    for part, walked in zip(module_set.filter_parts, results, strict=True):
        columns[part.walk] = walked.rows if walked.error is None else None
        if walked.error is not None:
            failures.append(api.PartFailed(part.name, drop_frames(walked.error)))
    return module_set.parts_after_filters(columns), failures


def _full_read(
    parts: Sequence[Part], results: Sequence[Walked], signals: Sequence[str], extra: Sequence[str]
) -> FullRead:
    """The results by part, without the `extra` signals in the rows of the first one."""
    reads = []
    failures = []
    for part, walked in zip(parts, results, strict=True):
        if part is _SIGNALS:
            continue
        rows = walked.rows
        if part is parts[0]:
            rows = [row for row in rows if row[0] not in extra]
        reads.append(PartRead(part, rows))
        if walked.error is not None:
            failures.append(api.PartFailed(part.name, drop_frames(walked.error)))

    first = dict(results[0].rows)
    values = {name: first[name] for name in signals if name in first}
    return FullRead(reads, failures, values)


async def _read_part(walker: Walker, part: Part, extra: tuple[str, ...]) -> Walked:
    """One part; `extra` OIDs join its GET. Returns device errors, does not raise them."""
    if part.walk:
        return await walker.walk(part.walk)
    try:
        return Walked(await walker.get((*part.get, *extra)))
    except api.DeviceError as error:
        return Walked(error=error)


def _mapped(
    full_read: FullRead, module_set: ModuleSet, memory: TargetMemory
) -> tuple[list[api.Yielded], Plan | None]:
    """Readings and failures of a full read, and the plan of the readings. Raises DeviceErrors."""
    rows = full_read.rows
    failures = full_read.failures
    if rows:
        readings, plan = memory.shapes.read(rows, module_set, complete=not failures)
        return [*_yielded(readings, plan), *failures], plan
    if not failures:
        names = ", ".join(module.name for module in module_set.modules)
        raise api.DeviceUnsupported(f"the device has nothing of {names}")
    return [*failures], None


def _yielded(readings: api.ReadingSet, plan: Plan) -> list[api.Yielded]:
    """The readings, with a failure for rows that share their name and labels."""
    items: list[api.Yielded] = [readings]
    if plan.duplicates:
        error = _ambiguous(plan.duplicates)
        items.append(api.PartFailed("labels", error))
    return items


def _ambiguous(duplicates: tuple[api.Series, ...]) -> api.DeviceProtocolError:
    """The error for rows that share their name and labels."""
    first = duplicates[0]
    labels = ", ".join(f'{key}="{value}"' for key, value in first.labels)
    count = len(duplicates)
    return api.DeviceProtocolError(
        f"{count} rows have name and labels of another, such as {first.name}{{{labels}}}"
    )
