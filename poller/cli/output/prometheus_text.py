"""Readings as Prometheus text, as an exporter would print them for the same device.

Counters at and above 2**53 are printed modulo 2**53, as snmp_exporter prints them: a float cannot
count by ones above that. Info metrics are printed as gauges: this format has no type for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from operator import itemgetter

from poller.domain.metrics.reading import Kind, Labels, ReadingSet

_FLOAT_MANTISSA = 2**53
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Sample = tuple[Labels, float, Kind]


def lines(readings: ReadingSet, help_texts: Mapping[str, str]) -> Iterator[str]:
    """The exposition line by line: metrics sorted by name, each with HELP, TYPE and its samples."""
    for name, samples in sorted(_families(readings).items()):
        if name in help_texts:
            text = help_texts[name].translate(_HELP_ESCAPES)
            yield f"# HELP {name} {text}"
        kind = Kind.COUNTER if samples[0][2] is Kind.COUNTER else Kind.GAUGE
        yield f"# TYPE {name} {kind.value}"
        for labels, value, _ in sorted(samples, key=itemgetter(0)):
            yield f"{name}{_labels(labels)} {_value(value)}"


def _families(readings: ReadingSet) -> dict[str, list[Sample]]:
    """The samples by metric name."""
    families: dict[str, list[Sample]] = {}
    for series, value in zip(readings.series.series, readings.values, strict=True):
        samples = families.setdefault(series.name, [])
        samples.append((series.labels, value, series.kind))
    return families


def _labels(labels: Labels) -> str:
    """`{interface="ether1",vlan="7"}`, or an empty text."""
    if not labels:
        return ""
    pairs = ",".join(f'{key}="{value.translate(_LABEL_ESCAPES)}"' for key, value in labels)
    return f"{{{pairs}}}"


def _value(value: float) -> str:
    """A value as Prometheus parses it; integers without a fraction."""
    if isinstance(value, int):
        wrapped = value % _FLOAT_MANTISSA if value >= _FLOAT_MANTISSA else int(value)
        return str(wrapped)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < _FLOAT_MANTISSA:
        return str(int(value))

    return repr(value)
