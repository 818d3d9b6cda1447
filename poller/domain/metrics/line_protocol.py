"""The line protocol of InfluxDB: one line for all series of a poll that share their labels.

The text of a shape is made once, with gaps for the values, the tags of the target and the time.
Line protocol cannot carry line breaks, NaN, infinity, or a backslash before a delimiter.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple

from poller.domain.metrics import outside_labels
from poller.domain.metrics.reading import Kind, Labels, Series, SeriesSet

_TAGS_GAP = "\0"
_TIME_GAP = "\1"
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
    """What a line is: a row of many fields, or one series as Prometheus would name it."""

    ROW = "row"  # measurement = the collector, fields = the metrics that share their labels
    METRIC = "metric"  # measurement = the metric, one field


@dataclass(frozen=True, slots=True)
class LineForm:
    """The choices of an operator about lines."""

    layout: Layout = Layout.ROW
    measurement: str = ""  # of rows; "" is the name of the collector
    field: str = "value"  # of single metrics
    integers: bool = False  # counters of a known width as integers


class Field(NamedTuple):
    key: str  # escaped
    at: int  # the position of its value in the shape
    is_integer: bool


class Row(NamedTuple):
    """One line: its text between the measurement's end and the fields, and the fields."""

    measurement: str
    tags: str  # ",name=text,..." of the series' own labels
    fields: tuple[Field, ...]


class ShapeLines:
    """The lines of a shape for targets with the same names of labels."""

    def __init__(self, rows: Sequence[Row], doubled: Sequence[Series], renamed: Collection[str]):
        self.number = len(rows)
        self.doubled = tuple(doubled)  # series that another one hides, and that are left out
        self.renamed = tuple(renamed)  # labels that are `exported_<name>` outside
        self._rows = rows
        order = [field.at for row in rows for field in row.fields]
        self._has_integers = any(field.is_integer for row in rows for field in row.fields)
        self._template = "\n".join(map(_template, rows))
        self._pick = _picker(order)

    def text(self, values: Sequence[float], target_tags: str, at_ms: int) -> str:
        """Return the lines of one poll without a line break at the end; "" if no value is finite.

        `target_tags` is the text of `tags_text` for the labels of the target.
        """
        if self._is_plain(values):
            lines = self._template % self._pick(values)
        else:
            lines = "\n".join(self._finite_rows(values))
        return lines.replace(_TAGS_GAP, target_tags).replace(_TIME_GAP, str(at_ms))

    def unwritable(self, values: Sequence[float]) -> int:
        """The values that are too large for the integer that their field is."""
        if not self._has_integers or self._is_plain(values):
            return 0
        fields = [field for row in self._rows for field in row.fields if field.is_integer]
        return sum(1 for field in fields if abs(values[field.at]) >= _INTEGER_LIMIT)

    def _is_plain(self, values: Sequence[float]) -> bool:
        if not isfinite(sum(values)):  # one NaN or infinity makes the sum one
            return False
        return not self._has_integers or max(values, default=0.0) < _INTEGER_LIMIT

    def _finite_rows(self, values: Sequence[float]) -> Iterator[str]:
        for row in self._rows:
            fields = [field for field in row.fields if _is_writable(field, values[field.at])]
            if fields:
                text = _template(row._replace(fields=tuple(fields)))
                yield text % tuple(values[field.at] for field in fields)


def shape_lines(
    shape: SeriesSet, collector: str, target_labels: Labels, form: LineForm
) -> ShapeLines:
    """Return the lines of a shape for a target with these labels; only their names matter."""
    rows: dict[tuple[str, str], dict[str, Field]] = {}
    doubled: list[Series] = []
    renamed: set[str] = set()
    for at, series in enumerate(shape.series):
        joined = outside_labels.joined(series.labels, target_labels)
        renamed.update(joined.renamed)
        own = _without(joined.labels, target_labels)
        measurement, key = _measurement_and_field(series, collector, form)
        fields = rows.setdefault((measurement, tags_text(own)), {})
        if key in fields:
            doubled.append(series)
        else:
            is_integer = form.integers and series.kind is Kind.COUNTER and series.width > 0
            fields[key] = Field(key, at, is_integer)

    made = [
        Row(measurement, tags, tuple(fields.values()))
        for (measurement, tags), fields in rows.items()
    ]
    return ShapeLines(made, doubled, sorted(renamed))


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


def escaped_measurement(text: str) -> str:
    """Return the name of a measurement. A line that begins with # would be a comment."""
    cleaned = _BAD_BACKSLASH.sub("/", _CONTROL.sub(" ", text))
    if cleaned.startswith("#"):
        cleaned = "_" + cleaned[1:]
    return _MEASUREMENT_DELIMITER.sub(r"\\\1", cleaned)


def _escaped_key(text: str) -> str:
    return escaped(f"{text}_" if text in _RESERVED else text)


def _measurement_and_field(series: Series, collector: str, form: LineForm) -> tuple[str, str]:
    if form.layout is Layout.METRIC:
        return escaped_measurement(series.name), _escaped_key(form.field)
    return escaped_measurement(form.measurement or collector), _escaped_key(series.name)


def _without(labels: Labels, target_labels: Labels) -> Labels:
    of_target = {name for name, _ in target_labels}
    return tuple((name, text) for name, text in labels if name not in of_target)


def _template(row: Row) -> str:
    """Return a format of the row's values. The measurement and its tags have no gap of a value."""
    head = f"{row.measurement}{_TAGS_GAP}{row.tags} ".replace("%", "%%")
    fields = ",".join(
        f"{field.key.replace('%', '%%')}={'%di' if field.is_integer else '%r'}"
        for field in row.fields
    )
    return f"{head}{fields} {_TIME_GAP}"


def _is_writable(field: Field, value: float) -> bool:
    return isfinite(value) and not (field.is_integer and abs(value) >= _INTEGER_LIMIT)


def _picker(order: Sequence[int]) -> Callable[[Sequence[float]], tuple[Any, ...]]:
    """Return a function that gives values in this order, as a tuple also for a single one."""
    if len(order) == 1:
        return lambda values: (values[order[0]],)
    return itemgetter(*order) if order else lambda _: ()
