"""From {oid: value} and modules to samples: pure, no I/O, snmp_exporter's rules for values and labels.

Values are what the device said. (snmp_exporter takes Counter64 modulo 2**53; we do that only where
its text format is written, see `poller.cli.exposition`.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from poller.collectors.snmp import dates, oid, widths
from poller.collectors.snmp.language import NUMERIC, Lookup, Metric
from poller.collectors.snmp.oid import Oid
from poller.collectors.snmp.profile import Profile
from poller.collectors.snmp.rendering import COMBINED, Value, index_text, number, value_text
from poller.domain.readings import Kind, Labels, ReadingSet, Series, SeriesSet


@dataclass(frozen=True, slots=True)
class Sample:
    series: Series
    value: float
    #: The OID whose number this is; its value may change without changing the shape of the poll.
    source: str = ""
    scale: float = 0.0
    offset: float = 0.0


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


def map_values(values: Mapping[str, Value], profile: Profile, known: Mapping[str, Value] | None = None) -> Mapped:
    """Every sample the modules make of `values`. `known` has label texts of tables not read this time."""
    rows = _Rows(values, known or {})
    mapped = Mapped(shaping=rows.consulted)
    taken: dict[tuple[str, Labels], str] = {}
    for text, value in values.items():
        parts = text.split(".")
        for found in filter(None, [matcher.find(parts) for matcher in profile.matchers]):
            for sample in _samples(text, value, *found, rows):
                _keep(sample, text, taken, mapped)
    return mapped


def _keep(sample: Sample, origin: str, taken: dict[tuple[str, Labels], str], mapped: Mapped) -> None:
    """The first of two equal series stays. Two modules reading one row is no conflict, two rows are."""
    owner = taken.setdefault((sample.series.name, sample.series.labels), "")
    if not owner:
        taken[sample.series.name, sample.series.labels] = origin
        mapped.samples.append(sample)
    elif owner != origin:
        mapped.duplicates.append(sample.series)


class _Rows:
    """The values of a poll as labels see them; remembers what labels were made and from which OIDs."""

    def __init__(self, values: Mapping[str, Value], known: Mapping[str, Value]) -> None:
        self._values = values
        self._known = known
        self._labels: dict[tuple[int, int, str], Mapping[str, str]] = {}
        self._sorted: dict[tuple[int, int, str], Labels] = {}
        self.consulted: set[str] = set()

    def value(self, text: str) -> tuple[bool, Value]:
        """Is it there, and what is it? Whoever asks makes labels of the answer."""
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
        text, used, parts = index_text(parts, index.type, index.fixed_size, index.implied, index.enum_values)
        labels[index.labelname] = text
        label_oids[index.labelname] = used
    for lookup in metric.lookups:
        if not lookup.labels:
            labels.pop(lookup.labelname, None)
            continue
        suffix = oid.text(part for label in lookup.labels for part in label_oids.get(label, ()))
        present, value = rows.value(f"{lookup.oid}.{suffix}")
        labels[lookup.labelname] = _lookup_text(lookup, suffix, value, rows) if present else ""
        if present:
            label_oids[lookup.labelname] = (int(number(value)),)
    return labels


def _lookup_text(lookup: Lookup, suffix: str, value: Value, rows: _Rows) -> str:
    kind = lookup.type
    if kind == "EnumAsInfo" and lookup.enum_values:
        state = int(number(value))
        return lookup.enum_values.get(state, str(state))
    if kind in COMBINED:
        present, subtype = rows.value(f"{_previous(lookup.oid)}.{suffix}")
        kind = COMBINED[kind].get(int(number(subtype)), kind) if present else kind
    return value_text(value, kind)


def _samples(text: str, value: Value, metric: Metric, suffix: str, rows: _Rows) -> Iterator[Sample]:
    if metric.type in NUMERIC:
        kind = Kind.COUNTER if metric.type == "counter" else Kind.GAUGE
        series = Series(metric.name, rows.sorted_labels(metric, suffix), kind, widths.of(metric, value))
        yield Sample(series, scaled(value, metric.scale, metric.offset), text, metric.scale, metric.offset)
        return
    rows.consulted.add(text)
    labels = rows.labels(metric, suffix)
    match metric.type:
        case "EnumAsInfo":
            yield from _enum_info(metric, int(number(value)), labels)
        case "EnumAsStateSet":
            yield from _state_set(metric, int(number(value)), labels)
        case "Bits":
            yield from _bits(metric, value, labels)
        case "DateAndTime":
            instant = dates.date_and_time(value)
            if instant is not None:
                yield _sample(metric.name, labels, Kind.GAUGE, scaled(instant, metric.scale, metric.offset))
        case _:
            yield _text_sample(metric, suffix, value, labels, rows)


def scaled(value: Value, scale: float, offset: float) -> float:
    """The number, multiplied unless the scale is 0, and shifted; an integer stays one if neither is set."""
    result = number(value)
    if scale:
        result *= scale
    return result + offset if offset else result


def _text_sample(metric: Metric, suffix: str, value: Value, labels: Mapping[str, str], rows: _Rows) -> Sample:
    kind = metric.type
    if kind in COMBINED:
        present, subtype = rows.value(f"{_previous(metric.oid)}.{suffix}")
        kind = COMBINED[kind].get(int(number(subtype)), "OctetString") if present else "OctetString"
    if metric.name not in labels:
        labels = {**labels, metric.name: value_text(value, kind)}
    return _sample(metric.name, labels, Kind.INFO, scaled(1, metric.scale, metric.offset))


def _enum_info(metric: Metric, state: int, labels: Mapping[str, str]) -> Iterator[Sample]:
    if metric.name not in labels:  # else the index says it already
        text = metric.enum_values.get(state, str(state))
        yield _sample(metric.name + "_info", {**labels, metric.name: text}, Kind.INFO, 1)


def _state_set(metric: Metric, state: int, labels: Mapping[str, str]) -> Iterator[Sample]:
    names = dict(metric.enum_values)
    names.setdefault(state, str(state))
    for number_, text in names.items():
        yield _sample(metric.name, {**labels, metric.name: text}, Kind.GAUGE, int(number_ == state))


def _bits(metric: Metric, value: Value, labels: Mapping[str, str]) -> Iterator[Sample]:
    if not isinstance(value, bytes):  # the exporter fails the whole scrape here
        return
    for bit, text in metric.enum_values.items():
        on = bit < len(value) * 8 and value[bit // 8] & (128 >> bit % 8)
        yield _sample(metric.name, {**labels, metric.name: text}, Kind.GAUGE, int(bool(on)))


def _sample(name: str, labels: Mapping[str, str], kind: Kind, value: float) -> Sample:
    return Sample(Series(name, tuple(sorted(labels.items())), kind), value)


def _previous(text: str) -> str:
    """The OID of the column before: where the subtype of a combined type is found."""
    head, _, last = text.rpartition(".")
    return f"{head}.{int(last) - 1}"
