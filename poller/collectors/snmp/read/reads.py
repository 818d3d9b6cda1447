"""What to ask a device for in one poll: everything there is of its parts, or only what a known shape needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from poller import errors
from poller.collectors import api
from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet, Part
from poller.collectors.snmp.read import change_signals
from poller.collectors.snmp.read.parallel_links import Hands
from poller.collectors.snmp.read.route import Read, Route
from poller.collectors.snmp.read.walker import Leg, Walked, Walker
from poller.collectors.snmp.wire.value_types import Value

_SIGNALS = Part("signals")


class Everything(NamedTuple):
    reads: list[Read]
    failures: list[api.PartFailed]
    #: What the device said of its own changes, by OID.
    signals: Mapping[str, Value]

    @property
    def rows(self) -> list[Row]:
        return [row for read in self.reads for row in read.rows]


class Lost(Exception):
    """A known way could not be followed to its end. `parts` are those that did not answer."""

    def __init__(self, parts: Sequence[str], error: errors.DeviceError) -> None:
        super().__init__(str(error))
        self.parts = parts
        self.error = error


async def everything(module_set: ModuleSet, hands: Hands, lost: Lost | None = None) -> Everything:
    """Every part, and the signals with the first scalars. Parts that were lost a moment ago are not asked again.

    Raises what the first part met if nobody answered at all.
    """
    wanted, unfiltered = await _wanted(module_set, hands)
    parts = wanted if wanted and wanted[0].get else (_SIGNALS, *wanted)
    beside = tuple(name for name in module_set.signals if name not in parts[0].get)

    async def read(walker: Walker, part: Part) -> Walked:
        if lost is not None and part.name in lost.parts:
            return Walked(error=lost.error)
        more = beside if part is parts[0] else ()
        walked = await _read_part(walker, part, more)
        if walked.error is None:
            return walked
        if not hands.answered:  # nobody there: do not ask for the rest
            raise walked.error
        if not more or not isinstance(walked.error, api.DeviceTimeout):
            return walked
        # A signal may be what is silent: it must not take others with it.
        return await _read_part(
            walker, part, tuple(name for name in more if name == change_signals.UPTIME)
        )

    found = _sorted_out(parts, await hands.do(read, parts), module_set.signals, beside)
    found.failures.extend(unfiltered)
    return found


async def _wanted(
    module_set: ModuleSet, hands: Hands
) -> tuple[Sequence[Part], list[api.PartFailed]]:
    """What to read where that depends on what a column holds. One that cannot be read filters nothing."""

    async def read(walker: Walker, part: Part) -> Walked:
        walked = await walker.walk(part.walk)
        if walked.error is not None and not await _goes_on(walked.error, walker, hands):
            raise walked.error
        return walked

    if not module_set.filter_parts:
        return module_set.parts, []
    found = dict(
        zip(module_set.filter_parts, await hands.do(read, module_set.filter_parts), strict=True)
    )
    columns = {
        part.walk: walked.rows if walked.error is None else None for part, walked in found.items()
    }
    failed = [
        api.PartFailed(part.name, without_frames(w.error))
        for part, w in found.items()
        if w.error is not None
    ]
    return module_set.parts_after_filters(columns), failed


def _sorted_out(
    parts: Sequence[Part], found: Sequence[Walked], signals: Sequence[str], beside: Sequence[str]
) -> Everything:
    first = dict(found[0].rows)
    reads = [
        Read(part, walked.rows)
        for part, walked in zip(parts, found, strict=True)
        if part is not _SIGNALS
    ]
    if parts[0] is not _SIGNALS:
        reads[0] = Read(parts[0], [row for row in found[0].rows if row[0] not in beside])
    failures = [
        api.PartFailed(part.name, without_frames(walked.error))
        for part, walked in zip(parts, found, strict=True)
        if walked.error is not None and part is not _SIGNALS
    ]
    return Everything(reads, failures, {name: first[name] for name in signals if name in first})


async def _read_part(walker: Walker, part: Part, beside: tuple[str, ...]) -> Walked:
    if part.walk:
        return await walker.walk(part.walk)
    try:
        return Walked(await walker.get((*part.get, *beside)))
    except api.DeviceError as error:
        return Walked(error=error)


async def along(route: Route, hands: Hands) -> list[Row]:
    """The rows of a known way, in its order; they may be others than expected, and are none where a table that was
    empty has got some. Raises Lost, or that nobody answered.

    GETs go last: one that touches something silent says nothing about who is there.
    """
    legs: list[Leg | None] = [*route.legs, None]

    async def read(walker: Walker, leg: Leg | None) -> list[Row]:
        try:
            return await (walker.get(route.get, known=True) if leg is None else walker.stretch(leg))
        except api.DeviceError as error:
            met = hands.answered
            if not await _goes_on(error, walker, hands):
                raise
            parts = _silent(error, route.got if leg is None else (leg.part,))
            raise Lost(parts, error if met else walker.silence()) from None

    *walked, got = await hands.do(read, legs)
    for rows in walked:
        got += rows
    return got if await hands.first.nothing_in(route.gaps) else []


async def _goes_on(error: errors.DeviceError, walker: Walker, hands: Hands) -> bool:
    """Is there somebody to ask for the rest? What was asked for first may be the only thing that is silent."""
    return hands.answered or (isinstance(error, api.DeviceTimeout) and await walker.is_there())


def _silent(error: errors.DeviceError, parts: Sequence[str]) -> Sequence[str]:
    """Of which of these parts it is known that they do not answer. A GET of several does not say which it was."""
    return parts if isinstance(error, api.DeviceTimeout) and len(parts) == 1 else ()


def without_frames(error: errors.DeviceError) -> errors.DeviceError:
    """Frames would keep the closed link's socket alive for as long as the error is."""
    error.__context__ = None
    return error.with_traceback(None)
