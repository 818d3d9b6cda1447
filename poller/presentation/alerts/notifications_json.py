"""Receivers, routes and deliveries as JSON: the same for the command line and the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.delivery import Delivery, DeliveryState
from poller.domain.alerts.telling.notice import NoticeKind
from poller.domain.inventory import duration, target_filter
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

SCHEMA = "poller.notifications/1"
DELIVERIES_SCHEMA = "poller.notifications.deliveries/1"
DELIVERY_SCHEMA = "poller.notifications.delivery/1"
TEST_SCHEMA = "poller.notifications.test/1"
RETRY_SCHEMA = "poller.notifications.retry/1"


class ReceiverItem(BaseModel):
    """A receiver of the settings, and its deliveries."""

    name: str
    kind: str = Field(description="The installed receiver that it is made of.")
    problem: str = Field(description="Why no notice can be sent; empty if its table is right.")
    routes: list[str] = Field(description="The routes that tell it.")
    waiting: int = Field(description="Deliveries that wait for their next attempt.")
    oldest: Instant | None = Field(description="When the oldest of these was made.")
    dead: int = Field(description="Deliveries that were given up.")
    last_state: str = Field(description="How its last delivery ended: sent or dead.")
    last_at: Instant | None
    last_answer: str = Field(description="The receiver's answer, or the error.")


class RouteItem(BaseModel):
    """A route of the settings. Durations are texts such as 5m."""

    name: str
    receivers: list[str]
    where: str = Field(description="Filter of the devices; empty: all.")
    severities: list[str] = Field(description="Empty: all.")
    rules: list[str] = Field(description="Empty: all.")
    otherwise: bool = Field(description="Takes only alerts that no other route takes.")
    group_by: list[str]
    group_wait: str
    repeat: str
    quiet_passes: list[str] = Field(description="Severities that are told in quiet hours, too.")
    quiet_until: Instant | None = Field(description="End of its quiet hours; null outside.")
    escalate_after: str
    escalate_to: list[str]
    per_minute: int
    tell_resolved: bool
    tell_short: bool


class DeliveryItem(BaseModel):
    """One notice to one receiver."""

    id: int
    key: str = Field(description="By which the receiver recognizes a repeat.")
    route: str
    receiver: str
    kind: NoticeKind
    subject: str
    alerts: int = Field(description="Alerts that the notice tells of.")
    state: DeliveryState
    attempts: int
    due: Instant | None = Field(description="Of the next attempt, while it waits.")
    created: Instant | None
    ended: Instant | None
    answer: str = Field(description="The receiver's answer, or the last error.")


class DeliveryDetails(DeliveryItem):
    """A delivery with the text that people get, and the alerts."""

    body: str
    group: dict[str, str]
    alert_ids: list[int]


class TestedReceiver(BaseModel):
    """The answer of one receiver to a test."""

    receiver: str
    kind: str
    ok: bool
    answer: str = Field(description="Empty after an error.")
    error: str
    hint: str
    seconds: float


class RouteTest(BaseModel):
    """The notice of a test, and what each receiver of the route answered."""

    route: str
    ok: bool = Field(description="Whether every receiver took it.")
    subject: str = Field(description="What was sent.")
    body: str
    receivers: list[TestedReceiver]
    note: str = Field("", description="What went wrong beside the test.")


class Retried(BaseModel):
    """Deliveries that are tried again."""

    ids: list[int]


def route_item(route: Route, now_ms: int) -> RouteItem:
    """Return a route of the settings."""
    return RouteItem(
        name=route.name,
        receivers=list(route.receivers),
        where=target_filter.text(route.where),
        severities=[severity.value for severity in route.severities],
        rules=list(route.rules),
        otherwise=route.otherwise,
        group_by=list(route.group_by),
        group_wait=duration.format_ms(route.group_wait_ms),
        repeat=duration.format_ms(route.repeat_ms),
        quiet_passes=[severity.value for severity in route.quiet_passes],
        quiet_until=instants.of_ms(route.quiet_hours.end_ms(now_ms)),
        escalate_after=duration.format_ms(route.escalate_after_ms),
        escalate_to=list(route.escalate_to),
        per_minute=route.per_minute,
        tell_resolved=route.tell_resolved,
        tell_short=route.tell_short,
    )


def delivery_items(deliveries: Sequence[Delivery]) -> list[DeliveryItem]:
    """Return deliveries without the text of their notices."""
    return [DeliveryItem(**_fields(each)) for each in deliveries]


def delivery_details(delivery: Delivery) -> DeliveryDetails:
    """Return one delivery with its notice."""
    notice = delivery.notice
    return DeliveryDetails(
        **_fields(delivery),
        body=notice_text.body(notice),
        group=dict(notice.group),
        alert_ids=[alert.id for alert in notice.alerts],
    )


def _fields(delivery: Delivery) -> Mapping[str, Any]:
    is_waiting = delivery.state is DeliveryState.WAITING
    return {
        "id": delivery.id,
        "key": delivery.key,
        "route": delivery.route,
        "receiver": delivery.receiver,
        "kind": delivery.notice.kind,
        "subject": notice_text.subject(delivery.notice),
        "alerts": len(delivery.notice.alerts) + delivery.notice.more,
        "state": delivery.state,
        "attempts": delivery.attempts,
        "due": instants.of_ms(delivery.due_ms) if is_waiting else None,
        "created": instants.of_ms(delivery.created_ms),
        "ended": instants.of_ms(delivery.ended_ms),
        "answer": delivery.answer,
    }
