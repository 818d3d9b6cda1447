"""From {oid: value} and modules to samples: pure, no I/O, snmp_exporter's rules for values and labels.

Values are what the device said. (snmp_exporter takes Counter64 modulo 2**53; we do that only where
its text format is written, see `poller.cli.output.prometheus_text`.)
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

from poller.collectors.snmp import oid
from poller.collectors.snmp.metrics import counter_width, octet_dates, regex_extracts, strptime
from poller.collectors.snmp.metrics.label_text import (
    COMBINED,
    index_text,
    integer,
    number,
    state,
    value_text,
)
from poller.collectors.snmp.modules.module_model import NUMERIC, Extract, Lookup, Metric
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.oid import Oid
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series, SeriesSet

Convert = Callable[[Value], float | None]


@dataclass(frozen=True, slots=True)
class Sample:
    series: Series
    value: float
    #: The OID whose number this is; its value may change without changing the shape of the poll.
    source: str = ""
    #: Makes the number of that value: None where it is the number itself. It gives None for a value of another shape.
    convert: Convert | None = None


@dataclass(slots=True)
class Mapped:
    samples: list[Sample] = field(default_factory=list)
    #: OIDs whose values are part of labels (or of the set of series): the shape depends on them.
    shaping: set[str] = field(default_factory=set)
    #: Samples dropped because another row gave the same name and labels.
    duplicates: list[Series] = field(default_factory=list)

    def readings(self) -> ReadingSet:
        series = SeriesSet(tuple(sample.series for sample in self.samples))
        return ReadingSet(series, [sample.value for sample in self.samples])


def map_values(
    values: Mapping[str, Value], module_set: ModuleSet, known: Mapping[str, Value] | None = None
) -> Mapped:
    """Every sample the modules make of `values`. `known` has label texts of tables not read this time.

    A module sees only what it asks for itself, as if it were alone.
    """
    mapped = Mapped()
    taken: dict[tuple[str, Labels], str] = {}
    for matcher, scope in zip(module_set.matchers, module_set.scopes, strict=True):
        rows = _Rows(values, known or {}, scope, mapped.shaping)
        for text, value in values.items():
            found = matcher.find(text) if text in scope else None
            if found is not None:
                for sample in _samples(text, value, *found, rows):
                    _keep(sample, text, taken, mapped)
    return mapped


def _keep(
    sample: Sample, origin: str, taken: dict[tuple[str, Labels], str], mapped: Mapped
) -> None:
    """The first of two equal series stays. Two modules reading one row is no conflict, two rows are."""
    owner = taken.setdefault((sample.series.name, sample.series.labels), "")
    if not owner:
        taken[sample.series.name, sample.series.labels] = origin
        mapped.samples.append(sample)
    elif owner != origin:
        mapped.duplicates.append(sample.series)


class _Rows:
    """The values of a poll as labels see them; remembers what labels were made and from which OIDs."""

    def __init__(
        self,
        values: Mapping[str, Value],
        known: Mapping[str, Value],
        scope: Container[str],
        consulted: set[str],
    ) -> None:
        self._values = values
        self._known = known
        self._scope = scope
        self._labels: dict[tuple[int, int, str], Mapping[str, str]] = {}
        self._sorted: dict[tuple[int, int, str], Labels] = {}
        self.consulted = consulted

    def value(self, text: str) -> tuple[bool, Value]:
        """Is it there, and what is it? Whoever asks makes labels of the answer."""
        if text not in self._scope:
            return False, None
        self.consulted.add(text)
        if text in self._values:
            return True, self._values[text]
        return text in self._known, self._known.get(text)

    def labels(self, metric: Metric, suffix: str) -> Mapping[str, str]:
        key = (id(metric.indexes), id(metric.lookups), suffix)
        if key not in self._labels:
            self._labels[key] = _labels(metric, oid.parse(suffix) if suffix else (), self)
        return self._labels[key]

    def sorted_labels(self, metric: Metric, suffix: str) -> Labels:
        """The same tuple for every column of a row: thousands of series share it."""
        key = (id(metric.indexes), id(metric.lookups), suffix)
        if key not in self._sorted:
            self._sorted[key] = tuple(sorted(self.labels(metric, suffix).items()))
        return self._sorted[key]


def _labels(metric: Metric, parts: Oid, rows: _Rows) -> dict[str, str]:
    labels: dict[str, str] = {}
    label_oids: dict[str, Oid] = {}
    for index in metric.indexes:
        text, used, parts = index_text(
            parts, index.type, index.fixed_size, index.implied, index.enum_values
        )
        labels[index.labelname] = text
        label_oids[index.labelname] = used
    for lookup in metric.lookups:
        if not lookup.labels:
            labels.pop(lookup.labelname, None)
            continue
        suffix = ".".join(oid.text(label_oids.get(label, ())) for label in lookup.labels)
        present, value = rows.value(f"{lookup.oid}.{suffix}")
        labels[lookup.labelname] = _lookup_text(lookup, suffix, value, rows) if present else ""
        if present:
            label_oids[lookup.labelname] = (integer(value),)
    return labels


def _lookup_text(lookup: Lookup, suffix: str, value: Value, rows: _Rows) -> str:
    kind = lookup.type
    if kind == "EnumAsInfo" and lookup.enum_values:
        return lookup.enum_values.get(integer(value), str(integer(value)))
    if kind in COMBINED:
        present, subtype = rows.value(f"{_previous(lookup.oid)}.{suffix}")
        kind = COMBINED[kind].get(state(subtype), kind) if present else kind
    return value_text(value, kind, lookup.display_hint)


def _samples(text: str, value: Value, metric: Metric, suffix: str, rows: _Rows) -> Iterator[Sample]:
    if metric.type in NUMERIC:
        kind = Kind.COUNTER if metric.type == "counter" else Kind.GAUGE
        series = Series(
            metric.name, rows.sorted_labels(metric, suffix), kind, counter_width.of(metric, value)
        )
        convert = _scaler(metric.scale, metric.offset)
        yield Sample(series, scaled(value, metric.scale, metric.offset), text, convert)
        return
    labels = rows.labels(metric, suffix)
    match metric.type:
        case "EnumAsInfo":
            rows.consulted.add(text)
            yield from _enum_info(metric, state(value), labels)
        case "EnumAsStateSet":
            if state(value) not in metric.enum_values:
                rows.consulted.add(text)  # its row is there only while it lasts
            yield from _numbers(text, value, rows, _states(metric, state(value), labels))
        case "Bits":
            yield from _numbers(text, value, rows, _bits(metric, labels))
        case "DateAndTime" | "ParseDateAndTime" | "NTPTimeStamp":
            series = Series(metric.name, rows.sorted_labels(metric, suffix), Kind.GAUGE)
            yield from _numbers(text, value, rows, [(series, partial(_instant, metric))])
        case _:
            yield from _text_samples(text, metric, suffix, value, labels, rows)


def _numbers(
    text: str, value: Value, rows: _Rows, wanted: Iterable[tuple[Series, Convert]]
) -> Iterator[Sample]:
    """Those that the value has. While it lacks one, the value is part of the shape: it may have it the next time."""
    for series, convert in wanted:
        found = convert(value)
        if found is None:
            rows.consulted.add(text)
        else:
            yield Sample(series, found, text, convert)


def _instant(metric: Metric, value: Value) -> float | None:
    if metric.type == "ParseDateAndTime":
        found = strptime.parse(value_text(value, "DisplayString"), metric.datetime_pattern)
    else:
        found = (
            octet_dates.ntp_time_stamp(value)
            if metric.type == "NTPTimeStamp"
            else octet_dates.date_and_time(value)
        )
    return None if found is None else scaled(found, metric.scale, metric.offset)


@lru_cache(maxsize=1024)
def _scaler(scale: float, offset: float) -> Convert | None:
    return partial(scaled, scale=scale, offset=offset) if scale or offset else None


def scaled(value: Value, scale: float, offset: float) -> float:
    """The number, multiplied unless the scale is 0, and shifted; an integer stays one if neither is set."""
    result = number(value)
    if scale:
        result *= scale
    return result + offset if offset else result


def _text_samples(
    text: str, metric: Metric, suffix: str, value: Value, labels: Mapping[str, str], rows: _Rows
) -> Iterator[Sample]:
    kind = metric.type
    if kind in COMBINED:
        present, subtype = rows.value(f"{_previous(metric.oid)}.{suffix}")
        kind = COMBINED[kind].get(state(subtype), "OctetString") if present else "OctetString"
    if metric.extracts:
        yield from _numbers(
            text, value, rows, _extracts(metric, kind, rows.sorted_labels(metric, suffix))
        )
        return
    rows.consulted.add(text)
    if metric.name not in labels:
        labels = {**labels, metric.name: value_text(value, kind, metric.display_hint)}
    yield Sample(_series(metric.name, labels, Kind.INFO), scaled(1, metric.scale, metric.offset))


def _extracts(metric: Metric, kind: str, labels: Labels) -> Iterator[tuple[Series, Convert]]:
    for suffix, ways in metric.extracts.items():
        yield (
            Series(metric.name + suffix, labels, Kind.GAUGE),
            partial(_extracted, metric, kind, ways),
        )


def _extracted(metric: Metric, kind: str, ways: Sequence[Extract], value: Value) -> float | None:
    text = value_text(value, kind, metric.display_hint)
    numbers = (regex_extracts.extract(text, way.expression, way.value) for way in ways)
    first = next((found for found in numbers if found is not None), None)
    return None if first is None else scaled(first, metric.scale, metric.offset)


def _enum_info(metric: Metric, current: int, labels: Mapping[str, str]) -> Iterator[Sample]:
    if metric.name not in labels:  # else the index says it already
        text = metric.enum_values.get(current, str(current))
        yield Sample(_series(metric.name + "_info", {**labels, metric.name: text}, Kind.INFO), 1)


def _states(
    metric: Metric, current: int, labels: Mapping[str, str]
) -> Iterator[tuple[Series, Convert]]:
    """One for each state there is, and one for a state nobody has heard of."""
    names = {**metric.enum_values}
    names.setdefault(current, str(current))
    for text in dict.fromkeys(names.values()):
        yield (
            _series(metric.name, {**labels, metric.name: text}, Kind.GAUGE),
            partial(_is_state, names, text),
        )


def _is_state(names: Mapping[int, str], text: str, value: Value) -> float | None:
    current = names.get(state(value))
    return None if current is None else int(current == text)


def _bits(metric: Metric, labels: Mapping[str, str]) -> Iterator[tuple[Series, Convert]]:
    names = metric.enum_values
    for text in dict.fromkeys(names.values()):
        bits = tuple(bit for bit, name in names.items() if name == text)
        yield (
            _series(metric.name, {**labels, metric.name: text}, Kind.GAUGE),
            partial(_is_set, bits),
        )


def _is_set(bits: Sequence[int], value: Value) -> float | None:
    """None for what has no bits: the exporter fails the whole scrape there."""
    if not isinstance(value, bytes):
        return None
    return int(
        any(0 <= bit < len(value) * 8 and value[bit // 8] & (128 >> bit % 8) for bit in bits)
    )


def _series(name: str, labels: Mapping[str, str], kind: Kind) -> Series:
    return Series(name, tuple(sorted(labels.items())), kind)


def _previous(text: str) -> str:
    """The OID of the column before: where the subtype of a combined type is found."""
    head, _, last = text.rpartition(".")
    return f"{head}.{int(last) - 1}"
