"""Alerts, routes and candidates that tests of notices share."""

from __future__ import annotations

from typing import Any

from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import notice_plan
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.notice_plan import Candidate, NoticePlan
from poller.domain.alerts.telling.told import Told

NOW = 1_800_000_000_000
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


def alert(number: int = 1, **changes: Any) -> Alert:
    """A critical alert of a device of site fra, which fires since ten seconds."""
    values: dict[str, Any] = {
        "id": number,
        "rule": "device-unreachable",
        "severity": Severity.CRITICAL,
        "subject": Subject(device_id=number, device=f"sw-{number}", site="fra"),
        "state": AlertState.FIRING,
        "since_ms": NOW - 20 * SECOND,
        "seen_ms": NOW,
        "fired_ms": NOW - 10 * SECOND,
        "text": "no target responds",
    }
    return Alert(**{**values, **changes})


def ended(number: int = 1, **changes: Any) -> Alert:
    """The same alert after its end."""
    values = {"state": AlertState.RESOLVED, "resolved_ms": NOW - 10 * SECOND}
    return alert(number, **{**values, **changes})


def candidate(given: Alert, route: str = "ops", told: Told | None = None) -> Candidate:
    """An alert that one route takes, known since it fired or ended."""
    seen_ms = given.fired_ms if given.is_open else given.resolved_ms
    return Candidate(given, seen_ms, (route,), {route: told} if told else {})


def planned(*candidates: Candidate, now_ms: int = NOW, made_ms: Any = None, **options: Any) -> Any:
    """The plan of one route with these options."""
    route = Route(**{"name": "ops", "receivers": ("mail",), **options})
    return plan_of(candidates, route, made_ms or {}, now_ms)


def plan_of(candidates: Any, route: Route, made_ms: Any, now_ms: int) -> NoticePlan:
    return notice_plan.plan(candidates, {route.name: route}, made_ms, now_ms)


def told_once(at_ms: int = NOW - MINUTE, **changes: Any) -> Told:
    """A route that was told once that the alert fires."""
    values: dict[str, Any] = {"firings": 1, "first_ms": at_ms, "last_ms": at_ms, "keys": ("k1",)}
    return Told(**{**values, **changes})
