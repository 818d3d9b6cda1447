"""Rows of a menu to readings. Series are made once per row and reused while its labels stay what they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors.routeros.families import Family
from poller.domain.readings import Kind, ReadingSet, Series, SeriesSet

Row = Mapping[str, str]
_RowKey = tuple[str, tuple[str, ...], tuple[bool, ...]]


@dataclass(slots=True)
class Shapes:
    """What is remembered of one router's series between its polls."""

    rows: dict[_RowKey, tuple[Series, ...]] = field(default_factory=dict)
    last: SeriesSet | None = None

    def read(self, answers: Iterable[tuple[Family, Sequence[Row]]]) -> ReadingSet | None:
        """One set of all families' rows, the identical series set while nothing but numbers changed."""
        series: list[Series] = []
        values: list[float] = []
        rows: dict[_RowKey, tuple[Series, ...]] = {}
        seen: set[tuple[str, tuple[str, ...]]] = set()
        for family, answer in answers:
            for row in answer:
                key, numbers = _measure(family, row)
                identity = (family.name, key[1][: len(family.labels)])
                if identity in seen:  # a second row of that name would be the same series again
                    continue
                seen.add(identity)
                rows[key] = self.rows.get(key) or _series(family, key)
                series += rows[key]
                values += numbers
        self.rows = rows
        if not series:
            return None
        if self.last is None or self.last.series != tuple(series):
            self.last = SeriesSet(tuple(series))
        return ReadingSet(self.last, values)


def _measure(family: Family, row: Row) -> tuple[_RowKey, list[float]]:
    numbers = [item.parse(row[item.name]) if item.name in row else None for item in family.properties]
    texts = tuple(row.get(name, "") for name in (*family.labels.values(), *family.info.values()))
    key = (family.name, texts, tuple(number is not None for number in numbers))
    return key, [1, *(number for number in numbers if number is not None)]


def _series(family: Family, key: _RowKey) -> tuple[Series, ...]:
    _, texts, present = key
    labels = dict(zip((*family.labels, *family.info), texts, strict=True))
    identity = tuple(sorted((label, labels[label]) for label in family.labels))
    info = Series(family.info_metric, tuple(sorted(labels.items())), Kind.INFO)
    metrics = [
        Series(item.metric, identity, item.kind)
        for item, there in zip(family.properties, present, strict=True)
        if there
    ]
    return (info, *metrics)
