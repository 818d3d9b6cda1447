"""Which notices are due: from alerts, what was told of them, and the routes. Decisions only.

An alert is told to a route when it fires, again while nobody acknowledges it, and when it ends.
A notice waits a little for more alerts of its group, and for the end of quiet hours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import minute_limit, notice
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.notice import NoticeKind
from poller.domain.alerts.telling.told import NOTHING, TellingKind, Told

_URGENCY = {severity: number for number, severity in enumerate(Severity)}
_NOTICE_KINDS = {
    TellingKind.FIRING: NoticeKind.FIRING,
    TellingKind.ESCALATION: NoticeKind.ESCALATION,
    TellingKind.RESOLVED: NoticeKind.RESOLVED,
}
#: Earlier notices that a notice refers to, at most.
_MOST_REPLIES = 20


@dataclass(frozen=True, slots=True)
class Candidate:
    """An alert that may have to be told.

    `seen_ms` is since when it is to be told, or since when its end is known; `routes` are those
    that take it, `told` is what each route was told of it.
    """

    alert: Alert
    seen_ms: int
    routes: tuple[str, ...]
    told: Mapping[str, Told] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One alert of a notice. A short alert is told once, with its end."""

    alert: Alert
    kind: TellingKind
    round: int
    is_short: bool = False

    @property
    def tellings(self) -> list[tuple[int, str, int]]:
        own = (self.alert.id, self.kind.value, self.round)
        return [(self.alert.id, TellingKind.FIRING.value, 0), own] if self.is_short else [own]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNotice:
    """A notice to be made, and whom it is for."""

    route: str
    kind: NoticeKind
    group: Mapping[str, str]
    items: tuple[Item, ...]
    receivers: tuple[str, ...]
    replies_to: tuple[str, ...]

    @property
    def key(self) -> str:
        tellings = [telling for item in self.items for telling in item.tellings]
        fired_ms = {item.alert.id: item.alert.fired_ms for item in self.items}
        return notice.key_of(self.route, self.kind, tellings, fired_ms)

    @property
    def urgency(self) -> int:
        return max(_URGENCY[item.alert.severity] for item in self.items)


@dataclass(slots=True)
class NoticePlan:
    """Notices that are due, ends that nobody is told, and when to look again (0: not by itself)."""

    notices: list[PlannedNotice] = field(default_factory=list)
    untold_ends: list[tuple[int, str]] = field(default_factory=list)  # alert id, route
    due_ms: int = 0

    def look_at(self, at_ms: int) -> None:
        """Have the plan made again at this instant, or earlier."""
        self.due_ms = min(at_ms, self.due_ms or at_ms)


def plan(
    candidates: Iterable[Candidate],
    routes: Mapping[str, Route],
    made_ms: Mapping[str, Sequence[int]],
    now_ms: int,
) -> NoticePlan:
    """Return what is due now. `made_ms` has the instants of the last minute's notices by route."""
    made = NoticePlan()
    wanted: dict[str, list[_Wanted]] = {}
    for candidate in candidates:
        for name in dict.fromkeys((*candidate.routes, *candidate.told)):
            route = routes.get(name)
            if route is None:
                _forget_end(made, candidate, name)
                continue
            found = _wanted(made, candidate, route, now_ms)
            if found is not None:
                wanted.setdefault(name, []).append(found)
    for name, of_route in wanted.items():
        route = routes[name]
        groups = [group for group in _groups(of_route, route) if _is_ready(made, group, now_ms)]
        made.notices += _limited(made, groups, route, made_ms.get(name, ()), now_ms)
    return made


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Something to tell of one alert, and from when on. A repeat joins others of its group."""

    item: Item
    told: Told
    at_ms: int


@dataclass(frozen=True, slots=True)
class _Group:
    route: Route
    kind: TellingKind
    labels: Mapping[str, str]
    wanted: Sequence[_Wanted]


def _forget_end(made: NoticePlan, candidate: Candidate, route: str) -> None:
    """Close the telling of a route that the settings no longer have."""
    told = candidate.told.get(route, NOTHING)
    if told.firings and not told.is_resolved and not candidate.alert.is_open:
        made.untold_ends.append((candidate.alert.id, route))


def _wanted(made: NoticePlan, candidate: Candidate, route: Route, now_ms: int) -> _Wanted | None:
    alert = candidate.alert
    told = candidate.told.get(route.name, NOTHING)
    if alert.state is AlertState.RESOLVED:
        return _wanted_end(made, candidate, route, told)
    if alert.state is not AlertState.FIRING or alert.suppressed_by:
        return None
    if not told.firings:
        item = Item(alert, TellingKind.FIRING, 0)
        return _Wanted(item, told, candidate.seen_ms + route.group_wait_ms)
    if _is_quieted(made, alert, now_ms):
        return None
    escalates = route.escalate_after_ms and not told.is_escalated
    if escalates and told.first_ms + route.escalate_after_ms <= now_ms:
        return _Wanted(Item(alert, TellingKind.ESCALATION, 0), told, now_ms)
    if escalates:
        made.look_at(told.first_ms + route.escalate_after_ms)
    if route.repeat_ms and route.name in candidate.routes:
        item = Item(alert, TellingKind.FIRING, told.firings)
        return _Wanted(item, told, told.last_ms + route.repeat_ms)
    return None


def _wanted_end(made: NoticePlan, candidate: Candidate, route: Route, told: Told) -> _Wanted | None:
    alert = candidate.alert
    if told.is_resolved:
        return None
    is_short = not told.firings
    if is_short and (not route.tell_short or alert.suppressed_by or not alert.fired_ms):
        return None
    if not route.tell_resolved and not is_short:
        made.untold_ends.append((alert.id, route.name))
        return None
    item = Item(alert, TellingKind.RESOLVED, 0, is_short)
    return _Wanted(item, told, candidate.seen_ms + route.group_wait_ms)


def _is_quieted(made: NoticePlan, alert: Alert, now_ms: int) -> bool:
    """Whether an alert is told once only for now: somebody works on it, or it flaps."""
    until_ms = alert.damped_until_ms
    if alert.acknowledged is not None:
        until_ms = max(until_ms, alert.acknowledged.until_ms)
    if until_ms > now_ms:
        made.look_at(until_ms)
    return until_ms > now_ms


def _groups(wanted: Iterable[_Wanted], route: Route) -> list[_Group]:
    """The groups of one route. First tellings and repeats are different groups."""
    groups: dict[tuple[object, ...], list[_Wanted]] = {}
    for each in wanted:
        labels = route.group_of(each.item.alert)
        key = (each.item.kind, bool(each.item.round), *labels.items())
        groups.setdefault(key, []).append(each)
    return [
        _Group(route, members[0].item.kind, route.group_of(members[0].item.alert), members)
        for members in groups.values()
    ]


def _is_ready(made: NoticePlan, group: _Group, now_ms: int) -> bool:
    """Whether the wait of the oldest is over, and no quiet hours hold the group back."""
    at_ms = min(each.at_ms for each in group.wanted)
    if at_ms > now_ms:
        made.look_at(at_ms)
        return False
    passes = group.route.quiet_passes
    if any(each.item.alert.severity in passes for each in group.wanted):
        return True
    quiet_until_ms = group.route.quiet_hours.end_ms(now_ms)
    if quiet_until_ms:
        made.look_at(quiet_until_ms)
    return not quiet_until_ms


def _limited(
    made: NoticePlan, groups: list[_Group], route: Route, made_ms: Sequence[int], now_ms: int
) -> Iterator[PlannedNotice]:
    """The groups as notices, the most urgent first; those beyond the limit as one summary."""
    notices = sorted(map(_notice, groups), key=lambda each: -each.urgency)
    room = minute_limit.room(len(notices), made_ms, route.per_minute, now_ms)
    if room.free_ms and notices:
        made.look_at(room.free_ms)
    yield from notices[: room.alone]
    rest = notices[room.alone :]
    if room.has_summary and rest:
        yield _summary(route, rest)


def _notice(group: _Group) -> PlannedNotice:
    receivers = group.route.receivers
    if group.kind is TellingKind.ESCALATION:
        receivers = group.route.escalate_to
    elif any(each.told.is_escalated for each in group.wanted):
        receivers = group.route.all_receivers
    ordered = sorted(group.wanted, key=lambda each: each.item.alert.id)
    return PlannedNotice(
        route=group.route.name,
        kind=_NOTICE_KINDS[group.kind],
        group=group.labels,
        items=tuple(each.item for each in ordered),
        receivers=receivers,
        replies_to=_distinct(key for each in ordered for key in each.told.keys),
    )


def _summary(route: Route, notices: Sequence[PlannedNotice]) -> PlannedNotice:
    return PlannedNotice(
        route=route.name,
        kind=NoticeKind.SUMMARY,
        group={},
        items=tuple(item for each in notices for item in each.items),
        receivers=_distinct(name for each in notices for name in each.receivers),
        replies_to=_distinct(key for each in notices for key in each.replies_to),
    )


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:_MOST_REPLIES]
