"""Readings as Prometheus text, as an exporter would print them for the same device.

Counters at and above 2**53 are printed modulo 2**53, as snmp_exporter prints them: a float cannot
count by ones above that. Info metrics are printed as gauges: this format has no type for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from operator import itemgetter

from poller.domain.metrics.reading import Kind, Labels, ReadingSet

FLOAT_MANTISSA = 2**53
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Sample = tuple[Labels, float, Kind]


def lines(readings: ReadingSet, help_texts: Mapping[str, str]) -> Iterator[str]:
    """The exposition line by line: metrics sorted by name, each with HELP, TYPE and its samples."""
    for name, samples in sorted(_families(readings).items()):
        yield from head(name, samples[0][2], help_texts)
        for labels, value, _ in sorted(samples, key=itemgetter(0)):
            yield f"{series_text(name, labels)} {value_text(value)}"


def head(name: str, kind: Kind, help_texts: Mapping[str, str]) -> Iterator[str]:
    """The lines before the samples of a metric: its help, if it has one, and its type."""
    if name in help_texts:
        text = help_texts[name].translate(_HELP_ESCAPES)
        yield f"# HELP {name} {text}"
    shown = Kind.COUNTER if kind is Kind.COUNTER else Kind.GAUGE
    yield f"# TYPE {name} {shown.value}"


def series_text(name: str, labels: Labels) -> str:
    """`name{interface="ether1",vlan="7"}`, or the name alone."""
    return f"{name}{labels_text(labels)}"


def labels_text(labels: Labels) -> str:
    """`{interface="ether1",vlan="7"}`, or an empty text."""
    if not labels:
        return ""
    pairs = ",".join(f'{key}="{value.translate(_LABEL_ESCAPES)}"' for key, value in labels)
    return f"{{{pairs}}}"


def value_text(value: float) -> str:
    """A value as Prometheus parses it; integers without a fraction."""
    if isinstance(value, int):
        wrapped = value % FLOAT_MANTISSA if value >= FLOAT_MANTISSA else int(value)
        return str(wrapped)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < FLOAT_MANTISSA:
        return str(int(value))

    return repr(value)


def _families(readings: ReadingSet) -> dict[str, list[Sample]]:
    """The samples by metric name."""
    families: dict[str, list[Sample]] = {}
    for series, value in zip(readings.series.series, readings.values, strict=True):
        samples = families.setdefault(series.name, [])
        samples.append((series.labels, value, series.kind))
    return families
