"""What one poll yields: by the shortcut while nothing but numbers has changed, else of everything there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from poller.collectors import api
from poller.collectors.snmp.metrics.label_text import value_text
from poller.collectors.snmp.metrics.reading_plan import Plan, Shapes
from poller.collectors.snmp.modules import device_table
from poller.collectors.snmp.modules.device_table import Choose, ChosenModules
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read import change_signals, reads, shortcut
from poller.collectors.snmp.read.parallel_links import Hands
from poller.collectors.snmp.read.reads import Everything, Lost
from poller.collectors.snmp.read.route import Pace
from poller.collectors.snmp.read.walker import Walker
from poller.collectors.snmp.target_memory import Memory

#: Where every poll reads everything, the device is identified again after this time.
CHOICE_AGE_S = 3600.0


class Taken(NamedTuple):
    """Readings, and the parts that failed after another had answered."""

    items: list[api.Yielded]
    #: Everything was answered.
    well: bool


class Wanted(NamedTuple):
    """What a target asks for: modules by name, or none; then `choose` names them by what the device is."""

    modules: tuple[str, ...]
    select: Callable[[tuple[str, ...]], ModuleSet]
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
    module_set = await _module_set(hands, wanted, memory, now, often=period is None)
    found = await reads.everything(module_set, hands, lost)
    if change_signals.outlived(memory.signals, memory.signals_at, found.signals, now):
        memory.shapes.forget_labels()
    items, plan = _mapped(found, module_set, memory)
    if not found.failures:
        memory.signals, memory.signals_at = found.signals, now
    # A busy agent may cut a table short and call it the end: what has become less is looked at once more.
    less, memory.rows = len(found.rows) < memory.rows, len(found.rows)
    # Where it depends on what a column holds which rows are wanted, that is to be found out every time.
    lasts = not found.failures and not less and not module_set.filter_parts
    if plan is not None and lasts and period is not None:
        pace = Pace(memory.tuning.per_answer, memory.tuning.per_get)
        memory.shortcut = shortcut.make(found, module_set, plan, pace, now, period, known)
    return Taken(items, well=not found.failures)


async def _module_set(
    hands: Hands, wanted: Wanted, memory: Memory, now: float, often: bool
) -> ModuleSet:
    if wanted.modules:
        return wanted.select(wanted.modules)
    chosen = await _chosen_modules(hands, wanted.choose, memory.chosen, now, often)
    if memory.chosen is not None and chosen.names != memory.chosen.names:
        memory.shapes = Shapes()
    memory.chosen = chosen
    return wanted.select(chosen.names)


async def _chosen_modules(
    hands: Hands, choose: Choose, last: ChosenModules | None, now: float, often: bool
) -> ChosenModules:
    """Choose modules by the device's sysObjectID and sysDescr. Raises DeviceErrors.

    `often`: every poll reads everything, so the last choice is reused for `CHOICE_AGE_S`.
    """
    if last is not None and often and now - last.at < CHOICE_AGE_S:
        return last
    ((object_id, descr),) = await hands.do(_identity, (None,))
    return ChosenModules(choose(object_id, descr), now)


async def _identity(walker: Walker, _: None) -> tuple[str, str]:
    values = dict(await walker.get((device_table.SYS_OBJECT_ID, device_table.SYS_DESCR)))
    object_id = values.get(device_table.SYS_OBJECT_ID)
    descr = values.get(device_table.SYS_DESCR)
    return value_text(object_id, "DisplayString"), value_text(descr, "DisplayString")


def _mapped(
    found: Everything, module_set: ModuleSet, memory: Memory
) -> tuple[list[api.Yielded], Plan | None]:
    rows = found.rows
    if rows:
        readings, plan = memory.shapes.read(rows, module_set, complete=not found.failures)
        return [*_yielded(readings, plan), *found.failures], plan
    if not found.failures:
        names = ", ".join(module.name for module in module_set.modules)
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
