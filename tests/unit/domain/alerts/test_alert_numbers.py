"""The open alerts in numbers and words."""

from __future__ import annotations

from poller.domain.alerts import alert_numbers
from poller.domain.alerts.alert import Acknowledgement, Alert, AlertState, Subject
from poller.domain.alerts.alert_numbers import AlertCount
from poller.domain.alerts.rule import Severity
from poller.presentation import health_reasons
from poller.presentation.alerts import alert_sentences
from poller.presentation.health_reasons import Stores, Tone
from poller.web.api import alert_metrics

COUNTS = [
    AlertCount("firing", "critical", "no", 1),
    AlertCount("firing", "warning", "no", 2),
    AlertCount("firing", "critical", "site", 1_998),
    AlertCount("pending", "warning", "no", 4),
]


def test_what_something_covers_is_counted_apart() -> None:
    """One outage is one alert: its children do not add up to a crowd."""
    numbers = alert_numbers.of_counts(COUNTS)
    assert (numbers.firing, numbers.pending, numbers.suppressed) == (3, 4, 1_998)
    assert numbers.by_severity == {"critical": 1, "warning": 2}
    words = alert_sentences.in_words(numbers)
    assert words == "3 firing (1 critical), 4 pending, 1,998 suppressed"


def test_the_worst_alert_sets_the_tone() -> None:
    """An alert of the lowest severity worries nobody."""

    def reasons(*counts: AlertCount) -> list[tuple[Tone, str]]:
        stores = Stores(alerts=alert_numbers.of_counts(counts))
        return [(each.tone, each.text) for each in health_reasons.firing_alerts(stores)]

    critical, warning = COUNTS[:2]
    assert reasons(*COUNTS) == [(Tone.FAILING, "3 alerts are firing (1 critical).")]
    assert reasons(warning._replace(number=1)) == [(Tone.LATE, "1 alert is firing.")]
    assert reasons(warning._replace(severity="info")) == [(Tone.OK, "2 alerts are firing.")]
    assert reasons(critical._replace(suppressed="alert")) == []
    assert list(health_reasons.firing_alerts(Stores())) == []


def test_the_metric_has_every_combination() -> None:
    """The first alert is a rise from 0, not a series out of nowhere."""
    metric = alert_metrics.open_alerts(alert_numbers.of_counts(COUNTS))
    values = {tuple(each.labels.values()): each.value for each in metric.samples}
    assert len(values) == 2 * 3 * 5
    assert values["firing", "critical", "site"] == 1_998
    assert values["firing", "info", "no"] == 0


def test_an_alert_is_one_sentence() -> None:
    """What, how urgent, since when, what covers it, and who works on it."""
    alert = Alert(
        id=12,
        rule="uplink",
        severity=Severity.CRITICAL,
        subject=Subject(1, 2, "sw1", "snmp", "fra", "ifName=eth0"),
        state=AlertState.FIRING,
        since_ms=1_000,
        seen_ms=1_000,
        fired_ms=61_000,
        suppressed_by="site:fra",
        acknowledged=Acknowledgement("kim", "", 1_000, 200_000),
    )
    assert alert_sentences.sentence(alert, 121_000) == (
        "alert 12 (critical, firing for 1 m 0 s, suppressed by site:fra, acknowledged by kim): "
        "uplink: sw1/snmp ifName=eth0"
    )
    assert "acknowledged" not in alert_sentences.sentence(alert, 200_000)
