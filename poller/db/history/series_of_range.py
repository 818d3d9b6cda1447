"""The series of one target over a range, as lines: from raw polls, or from roll-ups.

Memory is bounded by the selected series and the points of the plan: roll-ups are read some days at
a time, and polls beyond the points of a line are rolled up, never left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.history import polls_of_span, rolled_up, rollups
from poller.db.inventory.targets import Target
from poller.db.record import stored_readings
from poller.domain.metrics import series_identity
from poller.domain.metrics.reading import Series, SeriesSet
from poller.domain.series.series_plan import SeriesPlan

if TYPE_CHECKING:
    from poller.domain.rollups.rollup import Buckets, Rollup
    from poller.domain.rollups.sample_columns import SeriesRef
    from poller.domain.series.series_line import Selects, SeriesLine

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
#: Days of hourly and of 5-minute roll-ups that are in memory at a time.
DAYS = 64
FINE_DAYS = 32


class SeriesReader:
    """Reads the selected series of targets. One per question: it remembers shapes."""

    def __init__(self, engine: Engine, plan: SeriesPlan, selects: Selects) -> None:
        self._engine = engine
        self._plan = plan
        self._selects = selects
        self._shapes: dict[int, SeriesSet] = {}

    def lines(self, target: Target) -> Iterator[SeriesLine]:
        """Yield the lines of a target in the order of its newest poll. Raises StoreError."""
        if not self._plan.step_ms:
            yield from self._raw(target)
            return
        from poller.domain.series.range_tables import RangeTables

        buckets, factor = self._buckets()
        by = series_identity.identity_option(target.options)
        tables = RangeTables(buckets, by, self._selects, factor)
        for part in self.parts(target):
            tables.add(part, self._shapes)
        yield from tables.lines()

    def parts(self, target: Target) -> Iterator[Rollup]:
        """Yield the roll-ups of the range, in order. `shapes` then has theirs."""
        if self._plan.base_ms:
            yield from self._rolled_up(target)
        else:
            yield from self._from_polls(target)

    @property
    def shapes(self) -> dict[int, SeriesSet]:
        """The shapes of the roll-ups that were read."""
        return self._shapes

    def _buckets(self) -> tuple[Buckets, int]:
        """The buckets of the form that is read, and how many of them are one step."""
        from poller.domain.rollups.rollup import Buckets

        plan = self._plan
        read_ms = plan.base_ms or plan.step_ms
        factor = plan.step_ms // read_ms
        return Buckets(plan.start_ms, read_ms, plan.points * factor), factor

    def _rolled_up(self, target: Target) -> Iterator[Rollup]:
        plan = self._plan
        length_ms = _DAY_MS * (FINE_DAYS if plan.base_ms < _HOUR_MS else DAYS)
        first_day_ms = plan.start_ms // _DAY_MS * _DAY_MS
        for start_ms in range(first_day_ms, plan.end_ms, length_ms):
            end_ms = min(plan.end_ms, start_ms + length_ms)
            found = rolled_up.between(self._engine, target.id, plan.base_ms, start_ms, end_ms, self)
            for part in found:
                self._learn(part.shape_ids)
                yield part

    def _from_polls(self, target: Target) -> Iterator[Rollup]:
        from poller.domain.rollups.rollup import Buckets

        buckets, _ = self._buckets()
        count = max(1, _DAY_MS // buckets.step_ms)
        for first in range(0, buckets.count, count):
            start_ms = buckets.start_ms + first * buckets.step_ms
            some = Buckets(start_ms, buckets.step_ms, min(count, buckets.count - first))
            with sql.reading(self._engine) as conn:
                part = rollups.from_polls(conn, target.id, some, self._selects)
            if part is not None:
                self._learn(part.shape_ids)
                yield part

    def _raw(self, target: Target) -> Iterator[SeriesLine]:
        from poller.domain.rollups import sample_columns
        from poller.domain.series.raw_lines import RawReader

        plan = self._plan
        with sql.reading(self._engine) as conn:
            blocks = polls_of_span.around(conn, target.id, plan.start_ms, plan.end_ms)
            shape_ids = {segment.shape_id for block in blocks for segment in block.segments}
            shapes = stored_readings.shapes_in(conn, shape_ids) if shape_ids else {}
        reader = RawReader(
            sample_columns.joined(blocks, shapes),
            series_identity.identity_option(target.options),
            target.max_ms or target.interval_ms,
            self._selects,
        )
        yield from reader.lines(plan.start_ms, plan.end_ms)

    def wants(self, ref: SeriesRef) -> bool:
        """Whether a series is selected. One of an unknown shape has no name."""
        shape = self._shapes.get(ref.shape_id)
        return shape is not None and self._selects(shape.series[ref.index])

    def selects(self, series: Series) -> bool:
        """Whether a series is selected, by its name and labels."""
        return self._selects(series)

    def learn(self, conn: Connection, shape_ids: Collection[int]) -> None:
        """Read the shapes that are not known yet."""
        unknown = set(shape_ids) - self._shapes.keys()
        if unknown:
            self._shapes.update(stored_readings.shapes_in(conn, unknown))

    def _learn(self, shape_ids: frozenset[int]) -> None:
        if not shape_ids <= self._shapes.keys():
            with sql.reading(self._engine) as conn:
                self.learn(conn, shape_ids)
