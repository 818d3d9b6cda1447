"""What one poll yields: by the shortcut while nothing but numbers has changed, else of everything there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from poller.collectors import api
from poller.collectors.snmp.metrics.reading_plan import Plan, Shapes
from poller.collectors.snmp.modules import module_choice
from poller.collectors.snmp.modules.module_choice import Choose
from poller.collectors.snmp.modules.module_set import Profile
from poller.collectors.snmp.read import change_signals, reads, shortcut
from poller.collectors.snmp.read.parallel_links import Hands
from poller.collectors.snmp.read.reads import Everything, Lost
from poller.collectors.snmp.read.route import Pace
from poller.collectors.snmp.target_memory import Memory


class Taken(NamedTuple):
    """Readings, and the parts that failed after another had answered."""

    items: list[api.Yielded]
    #: Everything was answered.
    well: bool


class Wanted(NamedTuple):
    """What a target asks for: modules by name, or none; then `choose` names them by what the device is."""

    modules: tuple[str, ...]
    select: Callable[[tuple[str, ...]], Profile]
    choose: Choose


async def take(
    hands: Hands, wanted: Wanted, memory: Memory, now: float, period: int | None
) -> Taken:
    """One poll's worth. `period` is the number of the refresh period, None where nothing is believed twice.

    Raises DeviceErrors.
    """
    known, lost = memory.shortcut, None
    memory.shortcut = None  # until it has proved itself once more
    if known is not None and known.period == period:
        try:
            rows = await reads.along(known.route, hands)
        except Lost as error:
            lost = error
        else:
            readings = known.read(rows, now)
            if readings is not None:
                memory.shortcut = known
                return Taken(_yielded(readings, known.plan), well=True)
    memory.tuning.fits, memory.tuning.looks_ahead = 0, True
    profile = await _profile(hands, wanted, memory, now, often=period is None)
    found = await reads.everything(profile, hands, lost)
    if change_signals.outlived(memory.signals, memory.signals_at, found.signals, now):
        memory.shapes.forget_names()
    items, plan = _mapped(found, profile, memory)
    if not found.failures:
        memory.signals, memory.signals_at = found.signals, now
    # A busy agent may cut a table short and call it the end: what has become less is looked at once more.
    less, memory.rows = len(found.rows) < memory.rows, len(found.rows)
    # Where it depends on what a column holds which rows are wanted, that is to be found out every time.
    lasts = not found.failures and not less and not profile.filter_parts
    if plan is not None and lasts and period is not None:
        pace = Pace(memory.tuning.per_answer, memory.tuning.per_get)
        memory.shortcut = shortcut.make(found, profile, plan, pace, now, period, known)
    return Taken(items, well=not found.failures)


async def _profile(
    hands: Hands, wanted: Wanted, memory: Memory, now: float, often: bool
) -> Profile:
    if wanted.modules:
        return wanted.select(wanted.modules)
    chosen = await module_choice.ask(hands, wanted.choose, memory.chosen, now, often)
    if memory.chosen is not None and chosen.modules != memory.chosen.modules:
        memory.shapes = Shapes()
    memory.chosen = chosen
    return wanted.select(chosen.modules)


def _mapped(
    found: Everything, profile: Profile, memory: Memory
) -> tuple[list[api.Yielded], Plan | None]:
    rows = found.rows
    if rows:
        readings, plan = memory.shapes.read(rows, profile, complete=not found.failures)
        return [*_yielded(readings, plan), *found.failures], plan
    if not found.failures:
        names = ", ".join(module.name for module in profile.modules)
        raise api.DeviceUnsupported(f"the device has nothing of {names}")
    return [*found.failures], None


def _yielded(readings: api.ReadingSet, plan: Plan) -> list[api.Yielded]:
    if not plan.duplicates:
        return [readings]
    return [readings, api.PartFailed("labels", _ambiguous(plan.duplicates))]


def _ambiguous(duplicates: tuple[api.Series, ...]) -> api.DeviceProtocolError:
    labels = ", ".join(f'{key}="{value}"' for key, value in duplicates[0].labels)
    return api.DeviceProtocolError(
        f"{len(duplicates)} rows have name and labels of another, such as {duplicates[0].name}{{{labels}}}"
    )
