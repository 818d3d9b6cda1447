"""A notice: what one receiver is told at one time, of one or many alerts. Stored as JSON."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from poller.domain.alerts.alert import Alert, AlertState

#: Characters of the key of a notice; what follows in the key of a delivery names part and receiver.
KEY_LENGTH = 40


class NoticeKind(enum.StrEnum):
    """Why somebody is told."""

    FIRING = "firing"
    RESOLVED = "resolved"
    ESCALATION = "escalation"  # nobody acknowledged it
    SUMMARY = "summary"  # more groups than the route tells within a minute
    TEST = "test"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldAlert:
    """An alert as a notice tells of it. Instants are UTC ms; 0: not yet."""

    id: int
    identity: str
    rule: str
    severity: str
    state: str  # firing or resolved
    device: str = ""
    target: str = ""
    site: str = ""
    series: str = ""
    text: str = ""
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    since_ms: int = 0
    fired_ms: int = 0
    resolved_ms: int = 0
    flaps: int = 0
    folded: int = 0  # further alerts that it stands for
    url: str = ""

    @property
    def is_resolved(self) -> bool:
        return self.state == AlertState.RESOLVED

    @property
    def subject(self) -> str:
        """The subject of the alert, for people."""
        parts = [self.device or (f"site {self.site}" if self.site else "poller"), self.series]
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice. `key` is the same in every attempt and for every receiver of the route.

    `replies_to` are the keys of earlier notices of the same alerts, the oldest first.
    """

    key: str
    kind: NoticeKind
    route: str
    group: Mapping[str, str] = field(default_factory=dict)
    alerts: tuple[ToldAlert, ...] = ()
    more: int = 0  # further alerts that the notice leaves out
    replies_to: tuple[str, ...] = ()
    created_ms: int = 0

    def cut(self, most: int) -> Notice:
        """The notice with so many alerts at most; `more` counts the others."""
        if len(self.alerts) <= most:
            return self
        return replace(self, alerts=self.alerts[:most], more=len(self.alerts) - most)

    def pages(self, most: int) -> Iterator[Notice]:
        """The notice in parts of so many alerts. The keys of further parts are derived."""
        if len(self.alerts) <= most:
            yield self
            return
        for number, start in enumerate(range(0, len(self.alerts), most)):
            key = f"{self.key}.{number}" if number else self.key
            yield replace(self, key=key, alerts=self.alerts[start : start + most])


def told_alert(alert: Alert, folded: int = 0, web_url: str = "") -> ToldAlert:
    """Return what a notice tells of an alert."""
    subject = alert.subject
    return ToldAlert(
        id=alert.id,
        identity=subject.identity(alert.rule),
        rule=alert.rule,
        severity=alert.severity.value,
        state=alert.state.value,
        device=subject.device,
        target=subject.target,
        site=subject.site,
        series=subject.series,
        text=alert.text,
        value=alert.value,
        labels=dict(alert.labels),
        since_ms=alert.since_ms,
        fired_ms=alert.fired_ms,
        resolved_ms=alert.resolved_ms,
        flaps=alert.flaps,
        folded=folded,
        url=f"{web_url.rstrip('/')}/alerts/{alert.id}" if web_url and alert.id else "",
    )


def key_of(
    route: str,
    kind: NoticeKind,
    tellings: Iterable[tuple[int, str, int]],
    fired_ms: Mapping[int, int],
) -> str:
    """The key of what is told: the same for the same tellings, whoever makes the notice.

    The instants at which alerts fired tell those of another database apart, which has the same ids.
    """
    parts = [
        f"{alert_id}@{fired_ms[alert_id]}/{told}/{number}"
        for alert_id, told, number in sorted(tellings)
    ]
    text = "|".join([route, kind.value, *parts])
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def pack(notice: Notice) -> dict[str, Any]:
    """Return the notice for JSON."""
    return asdict(notice)


def unpack(document: Mapping[str, Any]) -> Notice:
    """Return the notice of its JSON."""
    alerts: Sequence[Mapping[str, Any]] = document["alerts"]
    fields = {
        **document,
        "kind": NoticeKind(document["kind"]),
        "alerts": tuple(ToldAlert(**alert) for alert in alerts),
        "replies_to": tuple(document["replies_to"]),
    }
    return Notice(**fields)
