"""A route: which alerts are told to which receivers, and how. `route_form.py` reads its table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller.domain.alerts.alert import Alert
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling.quiet_hours import NO_QUIET_HOURS, QuietHours
from poller.domain.inventory.filter_match import DeviceFacts, FilterMatch, TargetFacts
from poller.domain.inventory.target_filter import ANY, TargetFilter, wildcard_expression

#: What alerts of one notice can have in common.
GROUP_LABELS = ("site", "rule", "severity", "device")


@dataclass(frozen=True, slots=True)
class Route:
    """A checked route. Durations are in ms; 0 switches a function off."""

    name: str
    receivers: tuple[str, ...]
    where: TargetFilter = ANY
    severities: tuple[Severity, ...] = ()  # none: all
    rules: tuple[str, ...] = ()  # names of rules with wildcards; none: all
    otherwise: bool = False  # it takes only alerts that no other route takes
    group_by: tuple[str, ...] = ("site", "rule", "severity")
    group_wait_ms: int = 5_000
    repeat_ms: int = 4 * 3_600_000
    quiet_hours: QuietHours = NO_QUIET_HOURS
    quiet_passes: tuple[Severity, ...] = (Severity.CRITICAL,)  # told in quiet hours, too
    escalate_after_ms: int = 0
    escalate_to: tuple[str, ...] = ()
    per_minute: int = 10  # notices; further ones become one summary
    tell_resolved: bool = True
    tell_short: bool = False  # alerts that end before they were told

    def group_of(self, alert: Alert) -> dict[str, str]:
        """The key that all alerts of one notice share."""
        values = {
            "site": alert.subject.site,
            "rule": alert.rule,
            "severity": alert.severity.value,
            "device": alert.subject.device,
        }
        return {name: values[name] for name in self.group_by}

    @property
    def all_receivers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.receivers, *self.escalate_to)))


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Decides which alerts a route takes."""

    route: Route
    _filter: FilterMatch
    _rules: tuple[re.Pattern[str], ...] = field(default=())

    @classmethod
    def of(cls, route: Route) -> RouteMatch:
        """Prepare a route. Raises InvalidInput for a filter by states."""
        rules = tuple(re.compile(wildcard_expression(rule)) for rule in route.rules)
        return cls(route, FilterMatch(route.where), rules)

    def accepts(self, alert: Alert, facts: TargetFacts) -> bool:
        """Whether severity, rule and filter fit."""
        wanted = self.route.severities
        if wanted and alert.severity not in wanted:
            return False
        if self._rules and not any(rule.fullmatch(alert.rule) for rule in self._rules):
            return False
        return self._filter.accepts(facts)


def routes_of(alert: Alert, facts: TargetFacts | None, matches: Sequence[RouteMatch]) -> list[str]:
    """The names of all routes that take the alert, in the order of the settings.

    `facts` is None for an alert without a device: the filter then sees its site only.
    """
    subject = alert.subject
    known = facts or DeviceFacts(device=subject.device, site=subject.site)
    taken = [match for match in matches if match.accepts(alert, known)]
    first = [match.route.name for match in taken if not match.route.otherwise]
    return first or [match.route.name for match in taken]


def by_name(routes: Sequence[Route]) -> Mapping[str, Route]:
    return {route.name: route for route in routes}
