"""Which columns of a poll the rules look at, found once for each shape and set of rules.

Like devices share one plan, so a plan has numbers of columns and no names: the names are made when
a rule holds.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import gt, lt, sub
from typing import Final

from poller.domain.alerts.judging.interface_state import InterfaceColumns, InterfaceState
from poller.domain.alerts.judging.rate_limits import RateLimits
from poller.domain.alerts.judging.rule_set import Look, RuleSet
from poller.domain.metrics.packed_columns import PackedColumns, may_have_fallen
from poller.domain.metrics.reading import pack, unpack

VALUE_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Watched:
    """Columns of a shape in rising order, and for each the rules that look at it."""

    columns: array[int]
    starts: array[int]  # of each column's rules; one more than there are columns
    rules: array[int]  # their places in the rule set

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def rules_of(self, place: int) -> Sequence[int]:
        """Return the rules of the column at this place."""
        return self.rules[self.starts[place] : self.starts[place + 1]]

    def columns_of(self, rule: int) -> Iterator[int]:
        """Yield the columns that a rule looks at."""
        for place, column in enumerate(self.columns):
            if rule in self.rules_of(place):
                yield column


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Plan:
    """The columns to look at in polls of one shape. `kept` are the columns that the next poll
    needs: counters, then states, speeds and other evidence.
    """

    rules: RuleSet
    size: int  # of the shape
    values: Watched
    counters: Watched
    interfaces: Watched
    interface_columns: Sequence[InterfaceColumns]
    kept: array[int]
    states: slice  # of the packed columns that are kept
    speeds: slice
    limits: RateLimits
    value_cut: PackedColumns
    kept_cut: PackedColumns
    high: array[float]  # of each watched value
    low: array[float]

    @property
    def is_empty(self) -> bool:
        """Whether no rule looks at anything."""
        return not (self.values or self.counters or self.interfaces)

    def unusual_values(self, packed: bytes) -> list[int]:
        """Return the places of values that a rule may hold for."""
        if not self.values:
            return []
        values = unpack(self.value_cut.cut(packed))
        if not (any(map(gt, values, self.high)) or any(map(lt, values, self.low))):
            return []
        rows = enumerate(zip(values, self.high, self.low, strict=True))
        return [place for place, (value, high, low) in rows if value > high or value < low]

    def unusual_growth(self, before: bytes, kept: bytes, seconds: float) -> list[int]:
        """Return the places of counters whose rate a rule may hold for: they grew much, grew little
        where that counts, or fell.
        """
        counters = len(self.counters)
        if not counters or seconds <= 0:
            return []
        end = VALUE_BYTES * counters
        old, new = unpack(before[:end]), unpack(kept[:end])
        limits = self.limits.growth(seconds, kept[self.speeds])
        is_usual = not (
            any(map(gt, map(sub, new, old), limits.high))
            or may_have_fallen(before[:end], kept[:end])
            or (limits.low is not None and any(map(lt, map(sub, new, old), limits.low)))
        )
        if is_usual:
            return []
        low = limits.low or [-math.inf] * counters
        rows = enumerate(zip(map(sub, new, old), limits.high, low, strict=True))
        return [at for at, (grown, most, least) in rows if grown > most or grown < max(0.0, least)]

    def has_fallen(self, before: bytes, kept: bytes) -> bool:
        """Whether any counter is lower than in the poll before."""
        end = VALUE_BYTES * len(self.counters)
        return any(map(lt, unpack(kept[:end]), unpack(before[:end])))

    def watched(self, look: Look) -> Watched:
        """Return the columns that rules of a kind look at."""
        if look is Look.STATE:
            return self.interfaces
        return self.values if look is Look.VALUE else self.counters

    def expanded(self, kept: bytes) -> array[float]:
        """Return the kept columns as a poll of the shape; all others are NaN."""
        values = array("d", [math.nan]) * self.size
        for column, value in zip(self.kept, unpack(kept), strict=True):
            values[column] = value
        return values

    def with_last_states(self, before: bytes, kept: bytes) -> bytes:
        """Return the kept columns with the last known state of each interface: one that was up,
        says nothing for a while, and is then down, went down.
        """
        old, new = self.expanded(before), self.expanded(kept)
        for columns in self.interface_columns:
            if columns.state(new) is InterfaceState.UNKNOWN:
                for column in columns.both:
                    new[column] = old[column]
        return pack([new[column] for column in self.kept])

    def states_of(self, values: Sequence[float]) -> dict[int, InterfaceState]:
        """Return the state of each watched interface, by its column."""
        return {columns.operating: columns.state(values) for columns in self.interface_columns}
