"""Families of metrics with no label or one, for the Prometheus client library."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

#: A number, or the numbers of a labelled metric by label value.
Values = Mapping[str, float] | float


def gauge(name: str, text: str, values: Values, label: str = "") -> Metric:
    """The gauge `poller_NAME` with its help text."""
    labels = [label] if label else []
    family = GaugeMetricFamily(f"poller_{name}", text, labels=labels)
    return _filled(family, values)


def counter(name: str, text: str, values: Values, label: str = "") -> Metric:
    """The counter `poller_NAME_total` with its help text."""
    labels = [label] if label else []
    family = CounterMetricFamily(f"poller_{name}", text, labels=labels)
    return _filled(family, values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    if isinstance(values, Mapping):
        for label, value in values.items():
            family.add_metric([label], value)
    else:
        family.add_metric([], values)
    return family
