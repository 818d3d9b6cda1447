"""A plan for some of the rows of a shape: all other numbers are repeated from an earlier poll."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from poller.collectors.snmp.metrics.reading_plan import Plan
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import ReadingSet


class PartialPlan:
    """Makes readings of the rows of a route that leaves out resting ones.

    `positions` are the places of these rows in the full read, -1 for a row that was not there.
    """

    __slots__ = ("_columns", "_converted", "_full", "_oids_hash", "_rows", "_shaping")

    def __init__(
        self, full: Plan, oids: Sequence[str], values: Sequence[Value], positions: Sequence[int]
    ) -> None:
        row_at = {position: row for row, position in enumerate(positions) if position >= 0}
        direct = [
            (row_at[position], column)
            for position, column in full.direct_columns()
            if position in row_at
        ]
        self._full = full
        self._oids_hash = hash(tuple(oids))
        self._rows = array("i", [row for row, _ in direct])
        self._columns = array("i", [column for _, column in direct])
        self._converted = tuple(
            (row_at[position], column, convert)
            for position, column, convert in full.converted_columns()
            if position in row_at
        )
        shaping = [row_at[at] for at in full.shaping_positions() if at in row_at]
        self._shaping = tuple((row, values[row]) for row in shaping)

    @property
    def columns(self) -> set[int]:
        """The columns of the readings that come from the rows."""
        return {*self._columns, *(column for _, column, _ in self._converted)}

    def read(
        self, oids_hash: int, values: Sequence[Value], held: array[float]
    ) -> ReadingSet | None:
        """Read the values of a poll on top of held ones; None when more than numbers changed."""
        if oids_hash != self._oids_hash:
            return None
        if any(values[row] != value for row, value in self._shaping):
            return None

        numbers = held[:]
        try:
            for row, column in zip(self._rows, self._columns, strict=True):
                numbers[column] = values[row]  # type: ignore[assignment]  # a text is an error
            for row, column, convert in self._converted:
                numbers[column] = convert(values[row])
        except TypeError:  # a value has another type than before, or no number
            return None
        return ReadingSet(self._full.series, numbers)
