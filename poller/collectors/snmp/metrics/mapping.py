"""From {oid: value} and modules to samples, by snmp_exporter's rules for values and labels.

Pure: no I/O. Numbers stay as the device sent them; snmp_exporter's Counter64 modulo 2**53 is
applied where its text format is written, in `poller.presentation.exposition.prometheus_text`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from poller.collectors.snmp import oid
from poller.collectors.snmp.metrics import numeric_values
from poller.collectors.snmp.metrics.label_text import COMBINED, index_text, value_text
from poller.collectors.snmp.metrics.numeric_values import Convert, integer, scaled, state_number
from poller.collectors.snmp.modules.module_model import DATES, NUMERIC, Lookup, Metric
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.oid import Oid
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series, SeriesSet

#: Series that come from one value, each with the conversion that makes its number.
Conversions = Iterable[tuple[Series, Convert]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One series with its value of this poll."""

    series: Series
    value: float
    #: The OID of the number; its value can change without a new shape. Empty for a constant.
    source: str = ""
    #: Makes the number from that OID's value, and None from a value of another shape.
    #: Without a conversion the value is the number.
    convert: Convert | None = None


@dataclass(slots=True)
class Mapped:
    """The samples of one poll, and the OIDs that its shape depends on."""

    samples: list[Sample] = field(default_factory=list)
    #: OIDs whose values decide labels, or which series there are.
    shaping: set[str] = field(default_factory=set)
    #: Series dropped because another row has the same name and labels.
    duplicates: list[Series] = field(default_factory=list)

    def readings(self) -> ReadingSet:
        """Return the samples as readings, in their order."""
        series = tuple(sample.series for sample in self.samples)
        values = [sample.value for sample in self.samples]
        return ReadingSet(SeriesSet(series), values)


def map_values(
    values: Mapping[str, Value],
    module_set: ModuleSet,
    label_values: Mapping[str, Value] | None = None,
) -> Mapped:
    """Make every sample of the modules from `values`.

    Each module sees only the OIDs it reads itself, as if it were the only one.
    `label_values` are earlier values for labels, for tables that this poll could not read.
    """
    mapped = Mapped()
    owners: dict[tuple[str, Labels], str] = {}

    for matcher, scope in zip(module_set.matchers, module_set.scopes, strict=True):
        mapper = _ModuleMapper(values, label_values or {}, scope, mapped.shaping)
        for oid_text, value in values.items():
            match = matcher.find(oid_text) if oid_text in scope else None
            if match is not None:
                metric, suffix = match
                for sample in mapper.samples(oid_text, value, metric, suffix):
                    _add_sample(sample, oid_text, owners, mapped)

    return mapped


def _add_sample(
    sample: Sample,
    origin: str,
    owners: dict[tuple[str, Labels], str],
    mapped: Mapped,
) -> None:
    """Keep the first of two equal series; report the second if it comes from another row."""
    key = (sample.series.name, sample.series.labels)
    owner = owners.setdefault(key, "")
    if not owner:
        owners[key] = origin
        mapped.samples.append(sample)
    elif owner != origin:
        mapped.duplicates.append(sample.series)


class _ModuleMapper:
    """Makes the samples of one module. Labels are made once per row of a table.

    `shaping` collects the OIDs whose values decide labels, or which series there are.
    """

    def __init__(
        self,
        values: Mapping[str, Value],
        label_values: Mapping[str, Value],
        scope: Container[str],
        shaping: set[str],
    ) -> None:
        self._values = values
        self._label_values = label_values
        self._scope = scope
        self._shaping = shaping
        self._labels: dict[tuple[int, int, str], Mapping[str, str]] = {}
        self._sorted_labels: dict[tuple[int, int, str], Labels] = {}

    def samples(
        self,
        oid_text: str,
        value: Value,
        metric: Metric,
        suffix: str,
    ) -> Iterator[Sample]:
        """Yield the samples of one value, by the type of its metric."""
        if metric.type in NUMERIC:
            kind = Kind.COUNTER if metric.type == "counter" else Kind.GAUGE
            width = numeric_values.counter_width(metric, value)
            series = Series(metric.name, self.sorted_labels(metric, suffix), kind, width)
            convert = numeric_values.scaler(metric.scale, metric.offset)
            yield Sample(series, scaled(value, metric.scale, metric.offset), oid_text, convert)
            return

        if metric.type in DATES:
            series = Series(metric.name, self.sorted_labels(metric, suffix), Kind.GAUGE)
            conversions = [(series, partial(numeric_values.timestamp, metric))]
            yield from self._converted(oid_text, value, conversions)
            return

        labels = self.labels(metric, suffix)
        match metric.type:
            case "EnumAsInfo":
                self._shaping.add(oid_text)
                yield from _enum_info(metric, state_number(value), labels)
            case "EnumAsStateSet":
                current = state_number(value)
                if current not in metric.enum_values:
                    # An unnamed state has a series only while it lasts.
                    self._shaping.add(oid_text)
                yield from self._converted(oid_text, value, _states(metric, current, labels))
            case "Bits":
                yield from self._converted(oid_text, value, _bits(metric, labels))
            case _:
                yield from self._text_samples(oid_text, value, metric, suffix, labels)

    def _converted(self, oid_text: str, value: Value, conversions: Conversions) -> Iterator[Sample]:
        """Yield the samples the value has a number for.

        While a number is missing, the value is part of the shape: the next value may have it.
        """
        for series, convert in conversions:
            number = convert(value)
            if number is None:
                self._shaping.add(oid_text)
            else:
                yield Sample(series, number, oid_text, convert)

    def _text_samples(
        self,
        oid_text: str,
        value: Value,
        metric: Metric,
        suffix: str,
        labels: Mapping[str, str],
    ) -> Iterator[Sample]:
        """Yield the extracts of a text, or a sample of 1 with the text as a label."""
        kind = metric.type
        if kind in COMBINED:
            kind = self._combined_kind(metric.oid, suffix, kind, "OctetString")

        if metric.extracts:
            conversions = _extracts(metric, kind, self.sorted_labels(metric, suffix))
            yield from self._converted(oid_text, value, conversions)
            return

        self._shaping.add(oid_text)
        if metric.name not in labels:
            labels = {**labels, metric.name: value_text(value, kind, metric.display_hint)}

        series = _series(metric.name, labels, Kind.INFO)
        yield Sample(series, scaled(1, metric.scale, metric.offset))

    def labels(self, metric: Metric, suffix: str) -> Mapping[str, str]:
        """Return the labels of a row by name."""
        key = (id(metric.indexes), id(metric.lookups), suffix)
        if key not in self._labels:
            parts = oid.parse(suffix) if suffix else ()
            self._labels[key] = self._make_labels(metric, parts)

        return self._labels[key]

    def sorted_labels(self, metric: Metric, suffix: str) -> Labels:
        """Return the same tuple for every column of a row: thousands of series share it."""
        key = (id(metric.indexes), id(metric.lookups), suffix)
        if key not in self._sorted_labels:
            labels = self.labels(metric, suffix)
            self._sorted_labels[key] = tuple(sorted(labels.items()))

        return self._sorted_labels[key]

    def _make_labels(self, metric: Metric, parts: Oid) -> dict[str, str]:
        """Return the labels of a row: its indexes, then the lookups in their order."""
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
            present, value = self._label_value(f"{lookup.oid}.{suffix}")
            if present:
                labels[lookup.labelname] = self._lookup_text(lookup, suffix, value)
                label_oids[lookup.labelname] = (integer(value),)
            else:
                labels[lookup.labelname] = ""

        return labels

    def _label_value(self, oid_text: str) -> tuple[bool, Value]:
        """Return whether a value for a label is present, and the value."""
        if oid_text not in self._scope:
            return False, None

        self._shaping.add(oid_text)
        if oid_text in self._values:
            return True, self._values[oid_text]
        return oid_text in self._label_values, self._label_values.get(oid_text)

    def _lookup_text(self, lookup: Lookup, suffix: str, value: Value) -> str:
        """Return the text of a looked-up value."""
        if lookup.type == "EnumAsInfo" and lookup.enum_values:
            current = integer(value)
            return lookup.enum_values.get(current, str(current))

        kind = lookup.type
        if kind in COMBINED:
            kind = self._combined_kind(lookup.oid, suffix, kind, kind)
        return value_text(value, kind, lookup.display_hint)

    def _combined_kind(self, column: str, suffix: str, kind: str, default: str) -> str:
        """Return the real type of a combined type, which the column before names by a number."""
        table, _, number = column.rpartition(".")
        column_before = f"{table}.{int(number) - 1}"
        present, subtype = self._label_value(f"{column_before}.{suffix}")
        if not present:
            return default

        kinds = COMBINED[kind]
        return kinds.get(state_number(subtype), default)


def _extracts(metric: Metric, kind: str, labels: Labels) -> Conversions:
    """Yield one series for each suffix of `regex_extracts`."""
    for suffix, extracts in metric.extracts.items():
        series = Series(metric.name + suffix, labels, Kind.GAUGE)
        convert = partial(numeric_values.extracted, metric, kind, extracts)
        yield series, convert


def _enum_info(metric: Metric, current: int, labels: Mapping[str, str]) -> Iterator[Sample]:
    """Yield a sample of 1 with the name of the current state as a label."""
    if metric.name in labels:  # an index already names the state
        return

    state = metric.enum_values.get(current, str(current))
    state_labels = {**labels, metric.name: state}
    series = _series(f"{metric.name}_info", state_labels, Kind.INFO)
    yield Sample(series, 1)


def _states(metric: Metric, current: int, labels: Mapping[str, str]) -> Conversions:
    """Yield one series for each named state, and one for a current state without a name."""
    names = {**metric.enum_values}
    names.setdefault(current, str(current))

    for state in dict.fromkeys(names.values()):
        state_labels = {**labels, metric.name: state}
        series = _series(metric.name, state_labels, Kind.GAUGE)
        convert = partial(numeric_values.is_state, names, state)
        yield series, convert


def _bits(metric: Metric, labels: Mapping[str, str]) -> Conversions:
    """Yield one series for each name; bits that share a name share a series."""
    bits_by_name: dict[str, list[int]] = {}
    for bit, name in metric.enum_values.items():
        bits_by_name.setdefault(name, []).append(bit)

    for name, bits in bits_by_name.items():
        bit_labels = {**labels, metric.name: name}
        series = _series(metric.name, bit_labels, Kind.GAUGE)
        convert = partial(numeric_values.any_bit_set, tuple(bits))
        yield series, convert


def _series(name: str, labels: Mapping[str, str], kind: Kind) -> Series:
    """Return a series with sorted labels."""
    sorted_labels = tuple(sorted(labels.items()))
    return Series(name, sorted_labels, kind)
