"""Makes notices of the alerts in SQL, in one transaction with what they tell.

It remembers since when it knows of each alert, so that a notice waits a little for others. A new
leader goes by the instants in SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy.engine import Connection, Engine

from poller.alerts.receivers import api
from poller.alerts.receivers.registry import MadeReceiver
from poller.db import engine as sql
from poller.db.alerts import delivery_rows, notified_alerts
from poller.db.alerts.delivery_rows import MadeNotice, NoticeForReceiver
from poller.domain.alerts.alert import Alert
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import alert_route, minute_limit, notice, notice_plan, told
from poller.domain.alerts.telling.alert_route import Route, RouteMatch
from poller.domain.alerts.telling.notice import Notice, ToldAlert
from poller.domain.alerts.telling.notice_plan import Candidate, NoticePlan, PlannedNotice
from poller.domain.alerts.telling.told import Told

#: Ends that were not told are looked for this far back: at every pass, and in a full look.
RECENT_MS = 10 * 60_000
FULL_MS = 7 * 86_400_000
FULL_EVERY_MS = 60_000
#: An end that is older was found by a full look: it waits for no others of its group.
_OLD_END_MS = 60_000
_URGENCY = {severity.value: number for number, severity in enumerate(Severity)}


@dataclass(frozen=True, slots=True)
class _Read:
    """The findings of one reading of SQL."""

    alerts: Sequence[Alert]
    told: Mapping[int, Mapping[str, Told]]


class NoticeMaker:
    """Decides and stores; the threads of the receivers send."""

    def __init__(
        self,
        engine: Engine,
        routes: Sequence[Route],
        receivers: Mapping[str, MadeReceiver],
        web_url: str = "",
    ) -> None:
        self._engine = engine
        self._receivers = receivers
        self._web_url = web_url
        self._routes = {each.name: self._fitted(each) for each in routes}
        self._matches = [RouteMatch.of(each) for each in self._routes.values()]
        self._has_short = any(each.tell_short for each in routes)
        self.forget()

    def forget(self) -> None:
        """Forget all: another leader may have told meanwhile."""
        self._seen_ms: dict[tuple[int, bool], int] = {}  # (alert id, is open) -> since when known
        self._routes_of: dict[int, tuple[str, ...]] = {}
        self._full_look_ms = 0
        self._held_since_ms = 0  # the oldest end that is not told yet, such as in quiet hours

    def make(self, now_ms: int) -> tuple[int, int]:
        """Store the notices that are due. Returns how many, and when to look again (0: not).

        Raises StoreError; StoreConflict if another leader told first.
        """
        read = self._read(now_ms)
        plan = self._plan(read, now_ms)
        if plan.notices or plan.untold_ends:
            made = self._made(plan.notices, now_ms)
            delivery_rows.make(self._engine, made, plan.untold_ends, now_ms)
        self._held_since_ms = _oldest_held(read.alerts, plan, now_ms)
        return len(plan.notices), plan.due_ms

    def _fitted(self, given: Route) -> Route:
        """A route to receivers that keep state has neither limit nor repeats: they have theirs."""
        made = [self._receivers[name].receiver for name in given.all_receivers]
        if all(map(api.keeps_state, made)):
            return replace(given, per_minute=0, repeat_ms=0)
        return given

    def _read(self, now_ms: int) -> _Read:
        is_first = not self._full_look_ms
        is_full = now_ms >= self._full_look_ms + FULL_EVERY_MS
        since_ms = now_ms - FULL_MS
        if not is_full:
            since_ms = min(now_ms - RECENT_MS, self._held_since_ms)
        short_since_ms = now_ms - RECENT_MS if self._has_short else None
        with sql.reading(self._engine) as conn:
            found = notified_alerts.firing(conn)
            found += notified_alerts.ended(conn, since_ms, short_since_ms)
            tellings = notified_alerts.tellings(conn, [alert.id for alert in found])
            self._choose_routes(conn, found)
        if is_full:
            self._full_look_ms = now_ms
        self._remember(found, is_first, now_ms)
        fired_ms = {alert.id: alert.fired_ms for alert in found}
        return _Read(found, told.summed(told.by_clock(tellings, fired_ms, now_ms)))

    def _choose_routes(self, conn: Connection, found: Sequence[Alert]) -> None:
        """Find the routes of new alerts. Those of an alert stay the same until it ends."""
        known = {alert.id: self._routes_of.get(alert.id) for alert in found}
        new = [alert for alert in found if known[alert.id] is None]
        facts = notified_alerts.facts(conn, new) if new else {}
        self._routes_of = {key: names for key, names in known.items() if names is not None}
        for alert in new:
            names = alert_route.routes_of(alert, facts.get(alert.id), self._matches)
            self._routes_of[alert.id] = tuple(names)

    def _remember(self, found: Sequence[Alert], is_first: bool, now_ms: int) -> None:
        before = self._seen_ms
        self._seen_ms = {}
        for alert in found:
            key = (alert.id, alert.is_open)
            happened_ms = alert.fired_ms if alert.is_open else alert.resolved_ms
            is_old_end = not alert.is_open and happened_ms < now_ms - _OLD_END_MS
            new_ms = min(happened_ms, now_ms) if is_first or is_old_end else now_ms
            self._seen_ms[key] = before.get(key, new_ms)

    def _plan(self, read: _Read, now_ms: int) -> NoticePlan:
        candidates = [
            Candidate(
                alert,
                self._seen_ms[alert.id, alert.is_open],
                self._routes_of[alert.id],
                read.told.get(alert.id, {}),
            )
            for alert in read.alerts
        ]
        since_ms = now_ms - minute_limit.MINUTE_MS
        made_ms = delivery_rows.made_since(self._engine, since_ms) if candidates else {}
        return notice_plan.plan(candidates, self._routes, made_ms, now_ms)

    def _made(self, planned: Sequence[PlannedNotice], now_ms: int) -> list[MadeNotice]:
        if not planned:
            return []
        with sql.single_read(self._engine) as conn:
            folded = notified_alerts.folded(conn)
        return [self._made_notice(each, folded, now_ms) for each in planned]

    def _made_notice(
        self, planned: PlannedNotice, folded: Mapping[str, int], now_ms: int
    ) -> MadeNotice:
        alerts = [self._told(item.alert, folded) for item in planned.items]
        whole = Notice(
            key=planned.key,
            kind=planned.kind,
            route=planned.route,
            group=planned.group,
            alerts=tuple(sorted(alerts, key=lambda alert: -_URGENCY[alert.severity])),
            replies_to=planned.replies_to,
            created_ms=now_ms,
        )
        receivers = ", ".join(planned.receivers)
        return MadeNotice(
            route=planned.route,
            deliveries=list(self._deliveries(whole, planned.receivers)),
            tellings=[telling for item in planned.items for telling in item.tellings],
            text=f"{planned.kind.value}: route {planned.route} to {receivers}",
        )

    def _told(self, alert: Alert, folded: Mapping[str, int]) -> ToldAlert:
        number = folded.get(f"alert:{alert.id}", 0)
        if alert.subject.device_id is None and alert.subject.site:
            number += folded.get(f"site:{alert.subject.site}", 0)
        return notice.told_alert(alert, number, self._web_url)

    def _deliveries(self, whole: Notice, receivers: Sequence[str]) -> Iterator[NoticeForReceiver]:
        for name in receivers:
            if api.keeps_state(self._receivers[name].receiver):
                for part in whole.pages(api.PART_ALERTS):
                    yield NoticeForReceiver(name, part)
            else:
                yield NoticeForReceiver(name, whole.cut(api.MOST_ALERTS))


def _oldest_held(found: Sequence[Alert], plan: NoticePlan, now_ms: int) -> int:
    """When the oldest end came that was read and is not told now; now if there is none."""
    told_now = {item.alert.id for each in plan.notices for item in each.items}
    told_now |= {alert_id for alert_id, _ in plan.untold_ends}
    held = [each.resolved_ms for each in found if not each.is_open and each.id not in told_now]
    return min(held, default=now_ms)
