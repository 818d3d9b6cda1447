"""Notifications as texts: receivers, routes, what was sent, what waits, and what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from poller import errors
from poller.domain.alerts.telling.delivery import DeliveryState
from poller.domain.alerts.telling.notice import NoticeKind
from poller.presentation import formatting
from poller.presentation.alerts import route_texts
from poller.presentation.alerts.notifications_json import (
    DeliveryDetails,
    DeliveryItem,
    ReceiverItem,
    RouteItem,
    RouteTest,
)
from poller.presentation.health import Tone
from poller.presentation.record import instants
from poller.service.alerts.shown_notifications import NotificationListing
from poller.web.api.contract import paging
from poller.web.pages.alerts import deliveries_query
from poller.web.pages.alerts.deliveries_query import DeliveriesQuery

#: Alerts that the page of a delivery links to.
MOST_ALERTS = 50
_TONES = {
    DeliveryState.SENT: Tone.OK,
    DeliveryState.WAITING: Tone.LATE,
    DeliveryState.DEAD: Tone.FAILING,
}


@dataclass(frozen=True, slots=True)
class ReceiverRow:
    """A receiver: whether it can be reached, and what waits for it."""

    name: str
    kind: str
    tone: str
    state: str
    routes: str
    waiting: str
    waits: str  # how long the oldest one waits
    dead: str
    may_retry: bool
    last_at: str
    last: str
    answer: str


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route: what it takes, and whom it tells."""

    name: str
    takes: str
    tells: str
    repeat: str
    escalates: str
    quiet_until: str


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One notice to one receiver."""

    id: int
    made: str
    route: str
    receiver: str
    tone: str
    state: str
    due: str
    attempts: str
    subject: str
    answer: str
    may_retry: bool


@dataclass(frozen=True, slots=True)
class ToldView:
    """The result of a form, or the reason of its refusal."""

    text: str = ""
    test: RouteTest | None = None
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class NotificationsView:
    """The page of notifications."""

    as_of: str
    query: DeliveriesQuery
    receivers: Sequence[ReceiverRow]
    routes: Sequence[RouteRow]
    rows: Sequence[DeliveryRow]
    silence: str  # why nobody is told at all
    empty: str
    first: str
    following: str
    told: ToldView

    @property
    def states(self) -> Sequence[DeliveryState]:
        return list(DeliveryState)

    @property
    def has_dead(self) -> bool:
        return any(row.may_retry for row in self.rows)


@dataclass(frozen=True, slots=True)
class DeliveryView:
    """One delivery with its text."""

    as_of: str
    row: DeliveryRow
    ended: str
    kind: str
    key: str
    body: str
    group: Sequence[tuple[str, str]]
    alert_ids: Sequence[int]
    more_alerts: str


def build_view(
    query: DeliveriesQuery,
    listing: NotificationListing,
    items: Sequence[DeliveryItem],
    now_ms: int,
    told: ToldView,
) -> NotificationsView:
    """Build the view. `items` has one delivery more than a page if there is a next page."""
    shown = items[: deliveries_query.LIMIT]
    cursor = paging.encode([shown[-1].id]) if len(items) > len(shown) else None
    return NotificationsView(
        as_of=formatting.instant(now_ms),
        query=query,
        receivers=[_receiver(each, now_ms) for each in listing.receivers],
        routes=[_route(each) for each in listing.routes],
        rows=[_delivery(each, now_ms) for each in shown],
        silence=_silence(listing),
        empty=_empty(query),
        first=query.url() if query.after else "",
        following=query.url(after=cursor) if cursor else "",
        told=told,
    )


def build_delivery(item: DeliveryDetails, now_ms: int) -> DeliveryView:
    """Build the view of one delivery."""
    more = len(item.alert_ids) - MOST_ALERTS
    return DeliveryView(
        as_of=formatting.instant(now_ms),
        row=_delivery(item, now_ms),
        ended=_iso(item.ended),
        kind=item.kind.value,
        key=item.key,
        body=item.body,
        group=sorted(item.group.items()),
        alert_ids=item.alert_ids[:MOST_ALERTS],
        more_alerts=f"and {formatting.exact(more)} more" if more > 0 else "",
    )


def retried(number: int) -> str:
    """Say in words how a retry ended."""
    if not number:
        return "Nothing to try again: what was given up were tests, which are sent anew."
    noun = formatting.counted(number, "delivery", "deliveries")
    return f"{noun} {'is' if number == 1 else 'are'} tried again."


def refused(error: errors.PollerError) -> ToldView:
    """Return why a form was refused."""
    return ToldView(error=f"{error}.", hint=error.hint)


def _silence(listing: NotificationListing) -> str:
    if not listing.receivers:
        return "Nobody is told of alerts: poller.toml has no table [receiver.NAME]."
    if not listing.routes:
        return "Nobody is told of alerts: poller.toml has no table [route.NAME]."
    return ""


def _receiver(item: ReceiverItem, now_ms: int) -> ReceiverRow:
    tone, state = _receiver_state(item)
    waits = formatting.age(now_ms - _ms(item.oldest)) if item.oldest else ""
    return ReceiverRow(
        name=item.name,
        kind=item.kind,
        tone=str(tone),
        state=state,
        routes=", ".join(item.routes),
        waiting=formatting.exact(item.waiting),
        waits=f"the oldest for {waits}" if waits else "",
        dead=formatting.exact(item.dead),
        may_retry=bool(item.dead),
        last_at=_iso(item.last_at),
        last=item.last_state,
        answer=item.problem or item.last_answer,
    )


def _receiver_state(item: ReceiverItem) -> tuple[Tone, str]:
    if item.problem:
        return Tone.FAILING, "cannot be used"
    if item.last_state == DeliveryState.DEAD:
        return Tone.FAILING, "gave up the last one"
    if item.waiting:
        return Tone.LATE, "some wait"
    return (Tone.OK, "took the last one") if item.last_state else (Tone.UNKNOWN, "nothing sent yet")


def _route(item: RouteItem) -> RouteRow:
    escalates = ""
    if item.escalate_to:
        escalates = f"{', '.join(item.escalate_to)} after {item.escalate_after}"
    return RouteRow(
        name=item.name,
        takes=route_texts.takes(item.model_dump()),
        tells=", ".join(item.receivers),
        repeat=item.repeat,
        escalates=escalates,
        quiet_until=_iso(item.quiet_until),
    )


def _delivery(item: DeliveryItem, now_ms: int) -> DeliveryRow:
    due_ms = _ms(item.due) - now_ms if item.due else 0
    return DeliveryRow(
        id=item.id,
        made=_iso(item.created),
        route=item.route,
        receiver=item.receiver,
        tone=str(_TONES[item.state]),
        state=item.state.value,
        due=f"next attempt in {formatting.age(due_ms)}" if due_ms >= 1000 else "",
        attempts=formatting.exact(item.attempts),
        subject=item.subject,
        answer=item.answer,
        may_retry=item.state is DeliveryState.DEAD and item.kind is not NoticeKind.TEST,
    )


def _empty(query: DeliveriesQuery) -> str:
    """Why nothing is listed."""
    if query.after:
        return "There are no more."
    return "No delivery matches." if query.is_narrowed else "Nothing was sent yet."


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _iso(at: datetime | None) -> str:
    return instants.rfc3339(at) if at else ""
