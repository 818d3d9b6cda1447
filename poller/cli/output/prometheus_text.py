"""Readings as Prometheus text: what an exporter would have answered for the same device.

Counts at and above 2**53 are given modulo 2**53, as snmp_exporter gives them: a float cannot count by ones
up there. Info metrics are gauges here, because this format has no other word for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from poller.domain.metrics.reading import Kind, Labels, ReadingSet

_FLOAT_MANTISSA = 2**53
_HELP_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_LABEL_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


def lines(readings: ReadingSet, help_texts: Mapping[str, str]) -> Iterator[str]:
    """The exposition line by line: metrics by name, each with its HELP (where known) and TYPE, then its samples."""
    families: dict[str, list[tuple[Labels, float, Kind]]] = {}
    for series, value in zip(readings.series.series, readings.values, strict=True):
        families.setdefault(series.name, []).append((series.labels, value, series.kind))
    for name, samples in sorted(families.items()):
        if name in help_texts:
            yield f"# HELP {name} {help_texts[name].translate(_HELP_ESCAPES)}"
        kind = Kind.COUNTER if samples[0][2] is Kind.COUNTER else Kind.GAUGE
        yield f"# TYPE {name} {kind.value}"
        for labels, value, _ in sorted(samples, key=lambda sample: sample[0]):
            yield f"{name}{_labels(labels)} {_value(value)}"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = ",".join(f'{key}="{value.translate(_LABEL_ESCAPES)}"' for key, value in labels)
    return f"{{{pairs}}}"


def _value(value: float) -> str:
    if isinstance(value, int):
        return str(value % _FLOAT_MANTISSA if value >= _FLOAT_MANTISSA else int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < _FLOAT_MANTISSA else repr(value)
