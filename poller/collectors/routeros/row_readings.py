"""Turns the rows of menus into readings.

The series of a row are made once and reused while the labels of the row stay the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

from poller.collectors.memory.series_sets import with_newest
from poller.collectors.routeros import families, value_parser
from poller.collectors.routeros.families.family import PREFIX, WIDTH, Rows, Table
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

#: Shapes cached per router: with and without the families that are read less often.
_CACHED_SHAPES = 4
#: Rows converted before the event loop serves other polls.
_ROWS_PER_STEP = 500

#: What determines the series of a row: its table, the texts of labels and info, and which of the
#: table's metrics are present.
_RowKey = tuple[Table, tuple[str, ...], tuple[bool, ...]]
_MeasuredRow = tuple[str, _RowKey, list[float]]  # family, key, values
_RowSeries = dict[_RowKey, tuple[Series, ...]]
#: Property, parser and value of a missing property. A plain tuple: it is unpacked for each value.
_Column = tuple[str, value_parser.Parse, float | None]


class TableRows(NamedTuple):
    """Rows for one table of a family."""

    family: str
    table: Table
    rows: Rows


@dataclass(slots=True)
class SeriesCache:
    """The series of one router, cached between polls."""

    rows: dict[str, _RowSeries] = field(default_factory=dict)  # by family
    shapes: tuple[SeriesSet, ...] = ()

    async def readings(
        self, tables: Sequence[TableRows], present: Mapping[str, bool]
    ) -> ReadingSet:
        """Return the readings of all rows as one set.

        The series set is the identical object while only numbers change. Other polls run between
        the steps: a large router must not block the event loop of a worker.
        """
        steps = self._steps(tables, present)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return cast(ReadingSet, done.value)
            await asyncio.sleep(0)

    def _steps(
        self, tables: Sequence[TableRows], present: Mapping[str, bool]
    ) -> Generator[None, None, ReadingSet]:
        series = [_presence_series(family) for family in present]
        values: list[float] = [float(is_there) for is_there in present.values()]
        fresh: dict[str, _RowSeries] = {table.family: {} for table in tables}

        merged = yield from _merge(tables)
        for number, (family, key, row_values) in enumerate(merged, 1):
            row_series = self.rows.get(family, {}).get(key) or _series(key)
            fresh[family][key] = row_series
            series += row_series
            values += row_values
            if number % _ROWS_PER_STEP == 0:
                yield

        self.rows |= fresh
        return ReadingSet(self._shape(tuple(series)), values)

    def _shape(self, series: tuple[Series, ...]) -> SeriesSet:
        for shape in self.shapes:
            if shape.series == series:
                return shape
        shape = SeriesSet(series)
        self.shapes = with_newest(self.shapes, shape, _CACHED_SHAPES)
        return shape


def _merge(tables: Iterable[TableRows]) -> Generator[None, None, Iterable[_MeasuredRow]]:
    """Merge rows with the same labels: the last row counts, or the sum of the rows."""
    rows: dict[tuple[str, tuple[str, ...]], _MeasuredRow] = {}
    for family, table, table_rows in tables:
        name = _row_name(table)
        label_count = len(table.labels)
        for number, row in enumerate(table_rows, 1):
            if number % _ROWS_PER_STEP == 0:
                yield
            key, values = _measure(table, row)
            _, texts, present = key
            identity = (name, texts[:label_count])
            before = rows.get(identity)
            if before is not None and table.sums_rows:
                _, (_, _, present_before), values_before = before
                if present_before == present:
                    values = [one + other for one, other in zip(values_before, values, strict=True)]
                    if table.info:
                        values[0] = 1
            rows[identity] = (family, key, values)
    return rows.values()


def _measure(table: Table, row: Mapping[str, str]) -> tuple[_RowKey, list[float]]:
    text_properties, columns = _row_plan(table)
    values: list[float] = [1] if table.info else []
    present = []

    for name, parse, absent in columns:
        text = row.get(name)
        value = parse(text) if text else absent
        present.append(value is not None)
        if value is not None:
            values.append(value)

    texts = tuple([row.get(name, "") for name in text_properties])
    return (table, texts, tuple(present)), values


@cache
def _row_plan(table: Table) -> tuple[tuple[str, ...], tuple[_Column, ...]]:
    """Return the properties of a row that are texts, and those that are numbers."""
    info_properties = table.info.labels.values() if table.info else ()
    columns = [(each.property, each.parse, each.absent) for each in table.metrics]
    return (*table.labels.values(), *info_properties), tuple(columns)


def _row_name(table: Table) -> str:
    """Name the kind of a table's rows. Menus of different versions may give the same metrics."""
    return table.info.name if table.info else table.metrics[0].name


def _series(key: _RowKey) -> tuple[Series, ...]:
    table, texts, present = key
    names = [*table.labels]
    if table.info:
        names += table.info.labels
    labels = dict(zip(names, texts, strict=True))
    row_labels = tuple(sorted((label, labels[label]) for label in table.labels))

    series = []
    if table.info:
        info_labels = tuple(sorted(labels.items()))
        series.append(Series(PREFIX + table.info.name, info_labels, Kind.INFO))
    for metric, is_present in zip(table.metrics, present, strict=True):
        if is_present:
            width = WIDTH if metric.kind is Kind.COUNTER else 0
            series.append(Series(PREFIX + metric.name, row_labels, metric.kind, width))
    return tuple(series)


@cache
def _presence_series(family: str) -> Series:
    return Series(families.PRESENT, (("family", family),), Kind.GAUGE)
