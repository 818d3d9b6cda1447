"""The line protocol of InfluxDB: one line for all series of a poll that share their labels.

The text of a target's shape is made once, with gaps for the values and the time.
Line protocol cannot carry line breaks, NaN, infinity, or a backslash before a delimiter.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from poller.domain.metrics.reading import Kind, Labels, SeriesSet

_TIME_GAP = "\0"
#: Integers of line protocol are signed and have 64 bits.
_INTEGER_LIMIT = 2.0**63
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")
#: Stores disagree on what a backslash before a delimiter, or at the end, means.
_BAD_BACKSLASH = re.compile(r"\\+(?=[,= \"]|$)")
_DELIMITER = re.compile(r"([,= ])")
_MEASUREMENT_DELIMITER = re.compile(r"([, ])")
#: InfluxDB refuses a point with a tag or field of this name.
_RESERVED = frozenset({"time", "_field", "_measurement"})


class Layout(enum.StrEnum):
    """The meaning of a line: a row of many fields, or one series as Prometheus would name it."""

    ROW = "row"  # measurement = the collector, fields = the metrics that share their labels
    METRIC = "metric"  # measurement = the metric, one field


@dataclass(frozen=True, slots=True)
class LineForm:
    """The choices of an operator about lines."""

    layout: Layout = Layout.ROW
    measurement: str = ""  # of rows; "" is the name of the collector
    field: str = "value"  # of single metrics
    integers: bool = False  # counters of a known width as integers


class OutsideSeries(Protocol):
    """One series as the store shall know it. Series of one row share the object `labels`."""

    @property
    def column(self) -> int: ...  # in the values of the poll
    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> Labels: ...


class _Field(NamedTuple):
    key: str  # escaped
    column: int
    is_integer: bool


class _Row(NamedTuple):
    head: str  # measurement and tags, escaped
    fields: tuple[_Field, ...]


class ShapeLines:
    """The lines of a shape of one target, to be filled with the values of a poll."""

    def __init__(self, rows: Sequence[_Row], doubled: Sequence[str]) -> None:
        self.doubled = tuple(doubled)  # metrics of series that another one hides: left out
        self._rows = rows
        self._template = "\n".join(map(_template, rows))
        self._pick = _picker([field.column for row in rows for field in row.fields])
        self._integers = [field.column for row in rows for field in row.fields if field.is_integer]

    def text(self, values: Sequence[float], at_ms: int) -> str:
        """Return the lines of one poll, without a last line break; "" if no value is finite."""
        if isfinite(sum(values)) and not self.unwritable(values):
            lines = self._template % self._pick(values)
        else:  # one NaN or infinity makes the sum one
            lines = "\n".join(self._finite_rows(values))
        return lines.replace(_TIME_GAP, str(at_ms))

    def unwritable(self, values: Sequence[float]) -> int:
        """Return how many values are too large for the integer that their field is."""
        return sum(1 for column in self._integers if abs(values[column]) >= _INTEGER_LIMIT)

    def _finite_rows(self, values: Sequence[float]) -> Iterator[str]:
        for row in self._rows:
            fields = [field for field in row.fields if _is_writable(field, values[field.column])]
            if fields:
                text = _template(_Row(row.head, tuple(fields)))
                yield text % tuple(values[field.column] for field in fields)


def shape_lines(
    outside: Iterable[OutsideSeries], shape: SeriesSet, collector: str, form: LineForm
) -> ShapeLines:
    """Return the lines of the series of a shape that are sent."""
    rows: dict[str, dict[str, _Field]] = {}
    tags: dict[int, str] = {}  # by identity of the labels
    doubled: list[str] = []
    all_inside = shape.series
    for series in outside:
        text = tags.get(id(series.labels))
        if text is None:
            text = tags[id(series.labels)] = tags_text(series.labels)
        measurement, key = _measurement_and_field(series.name, collector, form)
        fields = rows.setdefault(measurement + text, {})
        if key in fields:
            doubled.append(series.name)
            continue
        inside = all_inside[series.column]
        is_integer = form.integers and inside.kind is Kind.COUNTER and inside.width > 0
        fields[key] = _Field(key, series.column, is_integer)
    made = [_Row(head, tuple(fields.values())) for head, fields in rows.items()]
    return ShapeLines(made, doubled)


def tags_text(labels: Labels) -> str:
    """Return labels as `,name=text,...`; labels without a text are left out."""
    pairs = [(name, escaped(text)) for name, text in labels]
    return "".join(f",{_escaped_key(name)}={text}" for name, text in pairs if text)


def escaped(text: str) -> str:
    """Return a tag's text: runs of control characters become a space, some backslashes a slash."""
    if text.isalnum():
        return text
    cleaned = _CONTROL.sub(" ", text)
    cleaned = _BAD_BACKSLASH.sub(lambda found: "/" * len(found[0]), cleaned)
    return _DELIMITER.sub(r"\\\1", cleaned)


@lru_cache(maxsize=8192)
def escaped_measurement(text: str) -> str:
    """Return the name of a measurement. A line that begins with # would be a comment."""
    cleaned = _BAD_BACKSLASH.sub("/", _CONTROL.sub(" ", text))
    if cleaned.startswith("#"):
        cleaned = "_" + cleaned[1:]
    return _MEASUREMENT_DELIMITER.sub(r"\\\1", cleaned)


@lru_cache(maxsize=8192)
def _escaped_key(text: str) -> str:
    return escaped(f"{text}_" if text in _RESERVED else text)


def _measurement_and_field(metric: str, collector: str, form: LineForm) -> tuple[str, str]:
    if form.layout is Layout.METRIC:
        return escaped_measurement(metric), _escaped_key(form.field)
    return escaped_measurement(form.measurement or collector), _escaped_key(metric)


def _template(row: _Row) -> str:
    """Return a format of the row's values, with a gap for the time."""
    head = row.head.replace("%", "%%")
    fields = ",".join(
        f"{field.key.replace('%', '%%')}={'%di' if field.is_integer else '%r'}"
        for field in row.fields
    )
    return f"{head} {fields} {_TIME_GAP}"


def _is_writable(field: _Field, value: float) -> bool:
    return isfinite(value) and not (field.is_integer and abs(value) >= _INTEGER_LIMIT)


def _picker(order: Sequence[int]) -> Callable[[Sequence[float]], tuple[Any, ...]]:
    """Return a function that gives values in this order, as a tuple also for a single one."""
    if len(order) == 1:
        return lambda values: (values[order[0]],)
    return itemgetter(*order) if order else lambda _: ()
