"""The lean read: while nothing of the interfaces changes, resting rows are not asked for.

A lane is made of a full read, proven by the next poll that asks for everything (no resting value
may have moved), and left for good as soon as a state changes: the same poll then asks for
everything, and the next full read makes a new lane.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.metrics.partial_plan import PartialPlan
from poller.collectors.snmp.metrics.reading_plan import Plan
from poller.collectors.snmp.read.replay import Replay
from poller.collectors.snmp.read.resting_rows import RestingRows
from poller.collectors.snmp.read.route import Route
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import ReadingSet

#: A lane is worth its memory if it takes at most this share of the requests for everything.
WORTHWHILE = 0.8


@dataclass(slots=True)
class Lane:
    """The lean read of one target."""

    route: Route
    plan: PartialPlan
    #: Columns of the readings that hold the states of ports.
    states: array[int]
    #: Columns of the readings that are not asked for.
    resting: array[int]
    #: Values of the last poll that asked for everything.
    held: array[float]
    #: Two such polls in a row gave the same resting values.
    proven: bool = False
    #: The prepared requests of the route.
    replay: Replay | None = None

    def has_other_states(self, values: Sequence[float]) -> bool:
        """Whether a port changed its state since the values that are held."""
        held = self.held
        return any(values[at] != held[at] for at in self.states)

    def prove(self, values: Sequence[float]) -> bool:
        """Take the readings of a poll that asked for everything; False if a resting one moved."""
        if any(values[at] != self.held[at] for at in self.resting):
            return False
        self.held = array("d", values)
        self.proven = True
        return True

    def read(self, oids_hash: int, values: Sequence[Value]) -> ReadingSet | None:
        """Readings of the rows of the lean route; None if anything but numbers has changed."""
        if len(values) != len(self.route.positions):
            return None
        readings = self.plan.read(oids_hash, values, self.held)
        if readings is None:
            return None
        return None if self.has_other_states(readings.values) else readings


def make(
    lean: Route, rows: Sequence[Row], full_plan: Plan, found: RestingRows, values: Sequence[float]
) -> Lane:
    """The lane along a route without the resting rows, from the rows and readings of a full read.

    It is used once it is proven.
    """
    oids = list(lean.get)
    oids += [rows[at][0] for at in lean.positions[len(oids) :]]
    route_values = [rows[at][1] if at >= 0 else None for at in lean.positions]
    plan = PartialPlan(full_plan, oids, route_values, lean.positions)
    asked = plan.columns
    states = [
        column
        for position, column in full_plan.direct_columns()
        if rows[position][0] in found.states
    ]
    return Lane(
        route=lean,
        plan=plan,
        states=array("i", states),
        resting=array("i", [at for at in range(len(values)) if at not in asked]),
        held=array("d", values),
    )
