"""From one poll to the next: the way to the numbers only, while everything else may be taken from memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.metrics.reading_plan import Plan
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read import change_signals, route
from poller.collectors.snmp.read.change_signals import Signals
from poller.collectors.snmp.read.reads import Everything
from poller.collectors.snmp.read.route import Pace, Route
from poller.domain.metrics.reading import ReadingSet

#: Remembered for all devices of a module_set together.
_ROUTES = 1_024


@dataclass(slots=True)
class Shortcut:
    """Of one target. It is dropped when anything on the way is not as it was."""

    route: Route
    plan: Plan
    #: The plan of everything, of which this one is a part; and what the way was made for.
    whole: Plan
    pace: Pace
    #: Names of the signals, the first on the way; and what they said last.
    names: tuple[str, ...]
    signals: Signals
    period: int

    def read(self, rows: Sequence[Row], now: float) -> ReadingSet | None:
        """None unless nothing but numbers changed, as far as the device can tell."""
        if len(rows) != len(self.route.positions):
            return None
        oids, values = zip(*rows, strict=True)
        signals = Signals(now, values[: len(self.names)])
        readings = self.plan.read(hash(oids), values)
        if readings is None or change_signals.has_changed(self.names, self.signals, signals):
            return None
        self.signals = signals
        return readings


def make(
    everything: Everything,
    module_set: ModuleSet,
    whole: Plan,
    pace: Pace,
    now: float,
    period: int,
    old: Shortcut | None,
) -> Shortcut | None:
    """The way for the polls to come, after one that read everything. None where no number is read."""
    names = tuple(everything.signals)
    signals = Signals(now, tuple(everything.signals.values()))
    if old is not None and (old.whole, old.pace, old.names) == (whole, pace, names):
        return Shortcut(old.route, old.plan, whole, pace, names, signals, period)
    found = _way(everything, module_set, names, pace)
    if not found.positions:
        return None
    rows = everything.rows
    oids = [*found.get, *(rows[at][0] for at in found.positions[len(found.get) :])]
    values = [rows[at][1] if at >= 0 else None for at in found.positions]
    return Shortcut(
        found, whole.narrowed(oids, values, found.positions), whole, pace, names, signals, period
    )


def _way(
    everything: Everything, module_set: ModuleSet, names: tuple[str, ...], pace: Pace
) -> Route:
    """Devices of one kind have the same rows, and share the way to their numbers."""
    oids = [hash(tuple(oid for oid, _ in one.rows)) for one in everything.reads]
    key = (names, pace, *(one.part for one in everything.reads), *oids)
    found = module_set.routes.get(key)
    if found is None:
        if len(module_set.routes) >= _ROUTES:
            module_set.routes.clear()
        found = module_set.routes[key] = route.find(everything.reads, module_set, names, pace)
    return found
