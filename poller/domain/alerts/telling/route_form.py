"""The table of a route, `[route.NAME]`, as people write it: read and checked.

Every error names the table, the option, what was wrong and what to write.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from poller import errors
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import alert_route, quiet_hours
from poller.domain.alerts.telling.alert_route import GROUP_LABELS, Route, RouteMatch
from poller.domain.inventory import duration, target_filter
from poller.domain.inventory.did_you_mean import nearest

Table = Mapping[str, Any]
V = TypeVar("V")

#: Every option of a route, with the sentence that describes it.
OPTIONS = {
    "receivers": "Receivers that are told: names of tables [receiver.NAME].",
    "where": "Filter of the devices, such as site:fra tag:core. Not set: all.",
    "severities": "Severities: info, warning, critical. Not set: all.",
    "rules": "Names of rules; * and ? are wildcards. Not set: all.",
    "otherwise": "true: the route takes only alerts that no other route takes.",
    "group_by": f"What alerts of one notice have in common: {', '.join(GROUP_LABELS)}.",
    "group_wait": "How long a notice waits for more alerts of its group.",
    "repeat": "How often an alert that nobody acknowledged is told again. 0s: never.",
    "quiet_hours": "Spans in which notices wait, such as mon-fri 18:00-08:00.",
    "time_zone": "Time zone of quiet_hours, such as Europe/Amsterdam.",
    "quiet_passes": "Severities that are told in quiet hours, too.",
    "escalate_after": "Time without acknowledgement after which escalate_to is told.",
    "escalate_to": "Receivers that are told of an alert that nobody acknowledged.",
    "per_minute": "Notices within a minute; further ones become one summary. 0: no limit.",
    "tell_resolved": "false: the end of an alert is not told.",
    "tell_short": "true: alerts that end before they were told are told, too.",
}
_LONGEST_WAIT_MS = 10 * 60_000
_SHORTEST_REPEAT_MS = 60_000
_LONGEST_MS = 31 * 86_400_000
_MOST_PER_MINUTE = 10_000


def read(tables: Mapping[str, Table], receivers: Collection[str]) -> list[Route]:
    """Return the routes of all tables, in their order. Raises InvalidSetting."""
    return [_route(name, table, receivers) for name, table in tables.items()]


def _route(name: str, table: Table, receivers: Collection[str]) -> Route:
    try:
        made = _Reader(table, receivers).route(name)
        RouteMatch.of(made)
    except errors.InvalidInput as error:
        text = f"[route.{name}] {error.message}"
        raise errors.InvalidSetting(text, error.cause, error.hint) from None
    return made


class _Reader:
    def __init__(self, table: Table, receivers: Collection[str]) -> None:
        self._table = table
        self._receivers = receivers

    def route(self, name: str) -> Route:
        self._refuse_unknown()
        defaults = alert_route.Route(name, ())
        escalate_to = self._receiver_names("escalate_to")
        escalate_after_ms = self._duration("escalate_after", 0, _SHORTEST_REPEAT_MS, _LONGEST_MS)
        if bool(escalate_to) != bool(escalate_after_ms):
            raise errors.InvalidInput(
                "escalate_after: it belongs together with escalate_to",
                hint='for example escalate_after = "15m", escalate_to = ["oncall"]',
            )
        return Route(
            name=name,
            receivers=self._required_receivers(),
            where=self._filter(),
            severities=self._severities("severities", ()),
            rules=self._texts("rules"),
            otherwise=self._flag("otherwise", default=False),
            group_by=self._group_by(defaults.group_by),
            group_wait_ms=self._duration("group_wait", defaults.group_wait_ms, 0, _LONGEST_WAIT_MS),
            repeat_ms=self._duration(
                "repeat", defaults.repeat_ms, _SHORTEST_REPEAT_MS, _LONGEST_MS
            ),
            quiet_hours=self._quiet_hours(),
            quiet_passes=self._severities("quiet_passes", defaults.quiet_passes),
            escalate_after_ms=escalate_after_ms,
            escalate_to=escalate_to,
            per_minute=self._per_minute(defaults.per_minute),
            tell_resolved=self._flag("tell_resolved", default=True),
            tell_short=self._flag("tell_short", default=False),
        )

    def _refuse_unknown(self) -> None:
        for key in self._table:
            if key not in OPTIONS:
                near = nearest(key, OPTIONS)
                hint = f"did you mean {near}?" if near else f"options: {', '.join(OPTIONS)}"
                raise errors.InvalidInput(f"{key}: there is no such option", hint=hint)

    def _required_receivers(self) -> tuple[str, ...]:
        names = self._receiver_names("receivers")
        if not names:
            known = ", ".join(sorted(self._receivers)) or "none; add a table [receiver.NAME]"
            raise errors.InvalidInput("receivers: it must be set", hint=f"receivers: {known}")
        return names

    def _receiver_names(self, key: str) -> tuple[str, ...]:
        names = self._texts(key)
        for name in names:
            if name not in self._receivers:
                near = nearest(name, self._receivers)
                hint = f"did you mean {near}?" if near else f"add a table [receiver.{name}]"
                raise errors.InvalidInput(f'{key}: there is no receiver "{name}"', hint=hint)
        return names

    def _filter(self) -> target_filter.TargetFilter:
        text = self._typed("where", "", str, "it is a text in quotes")
        if not text:
            return target_filter.ANY
        try:
            return target_filter.parse(text)
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"where: {error.message}", error.cause, error.hint) from None

    def _severities(self, key: str, default: tuple[Severity, ...]) -> tuple[Severity, ...]:
        if key not in self._table:
            return default
        return tuple(map(Severity, self._words(key, [severity.value for severity in Severity])))

    def _group_by(self, default: tuple[str, ...]) -> tuple[str, ...]:
        if "group_by" not in self._table:
            return default
        return self._words("group_by", GROUP_LABELS)

    def _words(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        words = self._texts(key)
        for word in words:
            if word not in known:
                hint = f"one of {', '.join(known)}"
                raise errors.InvalidInput(f'{key}: there is no "{word}"', hint=hint)
        return words

    def _quiet_hours(self) -> quiet_hours.QuietHours:
        texts = self._texts("quiet_hours")
        zone = self._typed("time_zone", "", str, "it is a text in quotes")
        if bool(texts) != bool(zone):
            missing, given = ("time_zone", "quiet_hours") if texts else ("quiet_hours", "time_zone")
            example = 'quiet_hours = ["22:00-07:00"], time_zone = "Europe/Amsterdam"'
            raise errors.InvalidInput(f"{missing}: {given} needs it", hint=f"for example {example}")
        return quiet_hours.parse(texts, zone) if texts else quiet_hours.NO_QUIET_HOURS

    def _duration(self, key: str, default_ms: int, least_ms: int, most_ms: int) -> int:
        if key not in self._table:
            return default_ms
        value = self._table[key]
        if not isinstance(value, str | int | float):
            raise errors.InvalidInput(f"{key}: it is a duration", hint='for example "5m"')
        try:
            parsed_ms = duration.parse_ms(value)
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"{key}: {error.message}", hint=error.hint) from None
        if parsed_ms and not least_ms <= parsed_ms <= most_ms:
            span = f"{duration.format_ms(least_ms)} to {duration.format_ms(most_ms)}"
            text = f"{key}: {duration.format_ms(parsed_ms)} is out of bounds"
            raise errors.InvalidInput(text, hint=f"choose {span}, or 0s")
        return parsed_ms

    def _per_minute(self, default: int) -> int:
        value = self._table.get("per_minute", default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise errors.InvalidInput("per_minute: it is a whole number", hint="for example 10")
        if not 0 <= value <= _MOST_PER_MINUTE:
            hint = f"choose 0 (no limit) to {_MOST_PER_MINUTE}"
            raise errors.InvalidInput(f"per_minute: {value} is out of bounds", hint=hint)
        return value

    def _flag(self, key: str, *, default: bool) -> bool:
        return self._typed(key, default, bool, "it is true or false")

    def _texts(self, key: str) -> tuple[str, ...]:
        value = self._table.get(key, [])
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise errors.InvalidInput(f'{key}: it is a list of texts: ["text"]')
        return tuple(dict.fromkeys(value))

    def _typed(self, key: str, default: V, kind: type[V], wanted: str) -> V:
        value: Any = self._table.get(key, default)
        if not isinstance(value, kind):
            raise errors.InvalidInput(f"{key}: {wanted}", hint=OPTIONS[key])
        return value
