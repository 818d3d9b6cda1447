"""What one poll yields: by the shortcut while nothing but numbers has changed, else of everything there is."""

from __future__ import annotations

from typing import NamedTuple

from poller.collectors import api
from poller.collectors.snmp import reading, shortcut
from poller.collectors.snmp.hands import Hands
from poller.collectors.snmp.memory import Memory
from poller.collectors.snmp.plan import Plan
from poller.collectors.snmp.profile import Profile
from poller.collectors.snmp.reading import Everything, Lost
from poller.collectors.snmp.route import Pace


class Taken(NamedTuple):
    """Readings, and the parts that failed after another had answered."""

    items: list[api.Yielded]
    #: Everything was answered.
    well: bool


async def take(hands: Hands, profile: Profile, memory: Memory, now: float, period: int | None) -> Taken:
    """One poll's worth. `period` is the number of the refresh period, None where nothing is believed twice.

    Raises DeviceErrors.
    """
    known, lost = memory.shortcut, None
    if known is not None and known.period == period:
        try:
            rows = await reading.along(known.route, hands)
        except Lost as error:
            lost = error
        else:
            readings = known.read(rows, now)
            if readings is not None:
                return Taken(_yielded(readings, known.plan), well=True)
    memory.shortcut = None
    memory.tuning.fits = 0
    found = await reading.everything(profile, hands, lost)
    items, plan = _mapped(found, profile, memory)
    if plan is not None and not found.failures and period is not None:
        pace = Pace(memory.tuning.per_answer, memory.tuning.oids.ceiling)
        memory.shortcut = shortcut.make(found, profile, plan, pace, now, period, known)
    return Taken(items, well=not found.failures)


def _mapped(found: Everything, profile: Profile, memory: Memory) -> tuple[list[api.Yielded], Plan | None]:
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
