"""The receiver `alertmanager`: alerts for Prometheus' Alertmanager, by its API v2.

Alertmanager forgets an alert that is not sent again, so everything that fires is sent again before
its `endsAt`. It groups, silences and tells by its own rules.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from poller import errors
from poller.alerts.receivers import api
from poller.alerts.receivers.api import Place
from poller.alerts.receivers.notice_json import instant
from poller.alerts.receivers.store_wording import worded
from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.notice import Notice, NoticeKind, ToldAlert
from poller.domain.inventory.api_version import Stated
from poller.sinks.http_options import HttpStoreOptions, store_url
from poller.sinks.http_store import HttpStore

_PATH = "/api/v2/alerts"
#: Clocks may differ by so much. Alertmanager takes an end that is still to come for no end.
_CLOCKS_MS = 5_000
#: Alerts whose labels are remembered.
_MOST_LABELS = 50_000
#: Alertmanager keeps an alert for so many periods after it was sent last.
PERIODS = 5
_JSON = [("Content-Type", "application/json")]


class AlertmanagerOptions(HttpStoreOptions):
    """Options of an Alertmanager, or of a cluster of them."""

    peers: tuple[Annotated[str, AfterValidator(store_url)], ...] = Field(
        (), description="URLs of the other instances of its cluster; each is told."
    )
    resend_s: float = Field(
        60.0, ge=1, le=600, description="How often everything that fires is sent again."
    )


class AlertmanagerReceiver:
    """One Alertmanager, or a cluster. A notice is sent once one instance has taken it."""

    name: ClassVar[str] = "alertmanager"
    api_version: ClassVar[Stated] = 1
    Options: ClassVar[type[AlertmanagerOptions]] = AlertmanagerOptions
    keeps_state: ClassVar[bool] = True

    def __init__(
        self,
        place: Place,
        options: AlertmanagerOptions,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.resend_s = options.resend_s
        self._place = place
        self._now = now
        self._labels: dict[int, dict[str, str]] = {}  # by the id of the alert, as first sent
        urls = dict.fromkeys([options.url, *options.peers])
        with worded():
            self._instances = [
                _Instance(HttpStore(options.model_copy(update={"url": url}), place.name))
                for url in urls
            ]

    def send(self, notice: Notice, key: str) -> str:
        """Send the alerts of a notice. Instances that failed last are left to `resend`."""
        if notice.kind is NoticeKind.TEST:
            return self._post([_test_alert(self._now())], self._instances)
        working = [each for each in self._instances if each.is_working]
        return self._post([self._alert(alert) for alert in notice.alerts], working)

    def resend(self, alerts: Sequence[ToldAlert]) -> str:
        """Send all alerts that fire to every instance."""
        answer = "nothing fires"
        for start in range(0, len(alerts), api.PART_ALERTS):
            part = alerts[start : start + api.PART_ALERTS]
            answer = self._post([self._alert(alert) for alert in part], self._instances)
        return answer

    def close(self) -> None:
        """End all connections."""
        for instance in self._instances:
            instance.store.close()

    def _post(self, alerts: list[dict[str, Any]], first: Sequence[_Instance]) -> str:
        """Send to these instances, and to the others only if none of these took it.

        Raises the error of the last instance if none took it.
        """
        body = json.dumps(alerts).encode()
        others = [each for each in self._instances if each not in first]
        failure: errors.PollerError | None = None
        taken, failed = 0, 0
        for instance in [*first, *others]:
            if taken and instance in others:
                break
            try:
                instance.post(body)
                taken += 1
            except (errors.StoreError, errors.InvalidSetting) as error:
                failure = error
                failed += 1
        if failure is not None and not taken:
            raise failure
        note = f"; {failed} failed: {failure}" if failure else ""
        return f"taken by {taken} of {len(self._instances)}{note}"

    def _identity(self, alert: ToldAlert) -> dict[str, str]:
        """The labels of an alert: those of its first notice, whatever the device is called
        meanwhile. With others Alertmanager would have a second alert.
        """
        if alert.id not in self._labels:
            if len(self._labels) >= _MOST_LABELS:
                del self._labels[next(iter(self._labels))]
            self._labels[alert.id] = _labels(alert)
        return self._labels[alert.id]

    def _alert(self, alert: ToldAlert) -> dict[str, Any]:
        """One alert as Alertmanager has it."""
        entry = {
            "labels": self._identity(alert),
            "annotations": _annotations(alert),
            "startsAt": instant(_started_ms(alert)),
            "endsAt": instant(self._ends_ms(alert)),
        }
        return {**entry, "generatorURL": alert.url} if alert.url else entry

    def _ends_ms(self, alert: ToldAlert) -> int:
        now_ms = round(self._now().timestamp() * 1000)
        if not alert.is_resolved:
            return now_ms + round(self.resend_s * PERIODS * 1000)
        return max(_started_ms(alert) + 1, min(alert.resolved_ms, now_ms - _CLOCKS_MS))


class _Instance:
    """One Alertmanager, and whether its last request succeeded."""

    def __init__(self, store: HttpStore) -> None:
        self.store = store
        self.is_working = True

    def post(self, body: bytes) -> None:
        base = "" if self.store.url.target == "/" else self.store.url.target
        self.is_working = False
        with worded():
            answer = self.store.post(f"{base}{_PATH}", body, _JSON)
            if not 200 <= answer.status < 300:
                raise self.store.failure(answer)
        self.is_working = True


def _started_ms(alert: ToldAlert) -> int:
    return alert.fired_ms or alert.since_ms


def _labels(alert: ToldAlert) -> dict[str, str]:
    labels = {
        "alertname": alert.rule,
        "severity": alert.severity,
        "device": alert.device,
        "target": alert.target,
        "site": alert.site,
        "series": alert.series,
    }
    return {name: value for name, value in labels.items() if value}


def _annotations(alert: ToldAlert) -> dict[str, str]:
    texts = {
        "summary": notice_text.headline(alert),
        "value": "" if alert.value is None else f"{alert.value:g}",
        "alert_id": str(alert.id),
        "folded": str(alert.folded) if alert.folded else "",
        **{f"label_{name}": value for name, value in alert.labels.items()},
    }
    return {name: value for name, value in texts.items() if value}


def _test_alert(now: datetime) -> dict[str, Any]:
    return {
        "labels": {"alertname": "poller_test", "severity": "info"},
        "annotations": {"summary": "A test of poller. Nothing is wrong."},
        "startsAt": instant(round(now.timestamp() * 1000)),
        "endsAt": instant(round((now + timedelta(minutes=1)).timestamp() * 1000)),
    }
