"""Rows of menus to readings. Series are made once per row and reused while its labels stay what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, cast

from poller.collectors.routeros import families, value_parser
from poller.collectors.routeros.families.family import PREFIX, WIDTH, Rows, Table
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

#: Shapes remembered: with and without the families that are read less often.
_KEPT = 4
#: So many rows in a row, before others have their turn.
_BREATH = 500

#: Table, texts of labels and of the info, and which of its metrics are there.
_RowKey = tuple[Table, tuple[str, ...], tuple[bool, ...]]
_Known = dict[_RowKey, tuple[Series, ...]]
_Measured = tuple[str, _RowKey, list[float]]  # of a family


class Answer(NamedTuple):
    """Rows for one table of a family."""

    family: str
    table: Table
    rows: Rows


@dataclass(slots=True)
class Shapes:
    """What is remembered of one router's series between its polls."""

    rows: dict[str, _Known] = field(default_factory=dict)  # by family
    recent: tuple[SeriesSet, ...] = ()

    def read(self, answers: Sequence[Answer], present: Mapping[str, bool]) -> ReadingSet:
        """One set of all rows, the identical series set while nothing but numbers changed."""
        steps = self._steps(answers, present)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return cast(ReadingSet, done.value)

    async def read_in_turns(
        self, answers: Sequence[Answer], present: Mapping[str, bool]
    ) -> ReadingSet:
        """The same, and between two steps others have their turn: a large router must not stop a worker's loop."""
        steps = self._steps(answers, present)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return cast(ReadingSet, done.value)
            await asyncio.sleep(0)

    def _steps(
        self, answers: Sequence[Answer], present: Mapping[str, bool]
    ) -> Generator[None, None, ReadingSet]:
        series = [_presence(family) for family in present]
        numbers: list[float] = [float(there) for there in present.values()]
        fresh: dict[str, _Known] = {answer.family: {} for answer in answers}
        merged = yield from _merged(answers)
        for number, (family, key, found) in enumerate(merged, 1):
            known = self.rows.get(family, {}).get(key) or _series(key)
            fresh[family][key] = known
            series += known
            numbers += found
            if number % _BREATH == 0:
                yield
        self.rows |= fresh
        return ReadingSet(self._same_as_before(tuple(series)), numbers)

    def _same_as_before(self, series: tuple[Series, ...]) -> SeriesSet:
        for shape in self.recent:
            if shape.series == series:
                return shape
        shape = SeriesSet(series)
        self.recent = (*self.recent[-_KEPT + 1 :], shape)
        return shape


def _merged(answers: Iterable[Answer]) -> Generator[None, None, Iterable[_Measured]]:
    """Every row once: of two with the same labels the last one counts, or their sum."""
    rows: dict[tuple[str, tuple[str, ...]], _Measured] = {}
    for family, table, found in answers:
        for number, row in enumerate(found, 1):
            if number % _BREATH == 0:
                yield
            key, numbers = _measure(table, row)
            identity = (_mark(table), key[1][: len(table.labels)])
            before = rows.get(identity)
            if before is not None and table.adds_up and before[1][2] == key[2]:
                numbers = [one + other for one, other in zip(before[2], numbers, strict=True)]
                if table.info:
                    numbers[0] = 1
            rows[identity] = (family, key, numbers)
    return rows.values()


def _measure(table: Table, row: Mapping[str, str]) -> tuple[_RowKey, list[float]]:
    texts, columns = _plan(table)
    numbers: list[float] = [1] if table.info else []
    there = []
    for name, parse, absent in columns:
        text = row.get(name)
        number = parse(text) if text else absent
        there.append(number is not None)
        if number is not None:
            numbers.append(number)
    return (table, tuple([row.get(name, "") for name in texts]), tuple(there)), numbers


@cache
def _plan(
    table: Table,
) -> tuple[tuple[str, ...], tuple[tuple[str, value_parser.Parse, float | None], ...]]:
    """What to look up in a row: texts, then numbers."""
    info = table.info.labels.values() if table.info else ()
    columns = tuple((metric.property, metric.parse, metric.absent) for metric in table.metrics)
    return (*table.labels.values(), *info), columns


def _mark(table: Table) -> str:
    """What its rows are: two tables may give the same metrics, of menus of different versions."""
    return table.info.name if table.info else table.metrics[0].name


def _series(key: _RowKey) -> tuple[Series, ...]:
    table, texts, there = key
    labels = dict(
        zip((*table.labels, *(table.info.labels if table.info else ())), texts, strict=True)
    )
    identity = tuple(sorted((label, labels[label]) for label in table.labels))
    made = [
        Series(
            PREFIX + metric.name, identity, metric.kind, WIDTH if metric.kind is Kind.COUNTER else 0
        )
        for metric, present in zip(table.metrics, there, strict=True)
        if present
    ]
    info = (
        [Series(PREFIX + table.info.name, tuple(sorted(labels.items())), Kind.INFO)]
        if table.info
        else []
    )
    return (*info, *made)


@cache
def _presence(family: str) -> Series:
    return Series(families.PRESENT, (("family", family),), Kind.GAUGE)
