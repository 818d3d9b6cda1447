"""The metric of open alerts. While SQL cannot be read there is none: a gap, not old numbers."""

from __future__ import annotations

from itertools import product

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.alert_numbers import COVERS, AlertNumbers
from poller.domain.alerts.rule import Severity

_OPEN = (AlertState.PENDING, AlertState.FIRING)


def open_alerts(numbers: AlertNumbers) -> Metric:
    """The open alerts. All values of the labels are there, also with 0: an alert is then a rise."""
    text = "Open alerts, by state, severity and what covers them."
    labels = ["state", "severity", "suppressed"]
    family = GaugeMetricFamily("poller_alerts", text, labels=labels)
    found = {(each.state, each.severity, each.suppressed): each.number for each in numbers.counts}
    for state, severity, cover in product(_OPEN, Severity, COVERS):
        key = (state.value, severity.value, cover)
        family.add_metric(list(key), found.get(key, 0))
    return family
