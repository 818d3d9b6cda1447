"""The metric rules that apply to a target, as polls are judged by them."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from poller import errors
from poller.domain.alerts.rule import (
    CertificateExpiry,
    InterfaceDown,
    Measure,
    MetricCondition,
    Rule,
    Threshold,
)
from poller.domain.inventory.filter_match import FilterMatch, TargetFacts
from poller.domain.inventory.target_filter import ANY, wildcard_expression
from poller.domain.metrics.series import Labels
from poller.domain.metrics.series_identity import Identity, identity_option

DAY_MS = 86_400_000
CERTIFICATE_METRIC = "http_tls_expiry_seconds"
_DAY_S = 86_400.0


class Look(enum.Enum):
    """The series that a rule looks at."""

    VALUE = "value"  # of a series
    RATE = "rate"  # of a counter
    STATE = "state"  # of an interface


@dataclass(frozen=True, slots=True)
class MetricRule:
    """A rule that workers judge. `threshold` is that of values and rates."""

    id: int
    look: Look
    labels: tuple[tuple[str, re.Pattern[str]], ...]
    threshold: Threshold | None = None
    is_percent: bool = False  # a rate in percent of the link's speed
    unit: float = 1.0  # a stored value is divided by it for people
    days_ms: int = 0  # an interface was up within so long

    def fits(self, labels: Labels) -> bool:
        """Whether a series with these labels is meant. A label that is missing fits no pattern."""
        if not self.labels:
            return True
        texts = dict(labels)
        return all(
            label in texts and pattern.fullmatch(texts[label]) for label, pattern in self.labels
        )


@dataclass(frozen=True, slots=True, eq=False)
class RuleSet:
    """The rules of a target, and what identifies its series. One object serves all targets alike.

    `plans` holds what was made of the rules for each shape, while it is in use.
    """

    rules: tuple[MetricRule, ...]
    by: Identity = Identity.IF_NAME
    plans: WeakValueDictionary[Any, Any] = field(default_factory=WeakValueDictionary, repr=False)

    @property
    def has_labels(self) -> bool:
        """Whether the texts of labels decide, so that like devices may have different plans."""
        return any(rule.labels for rule in self.rules)


NO_RULES = RuleSet(())


class RuleChoice:
    """Chooses the rules of a target, once for each version of the rules. Safe for threads."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.unusable: list[str] = []  # names of rules whose filter needs the state of a target
        self._rules: list[tuple[MetricRule, FilterMatch | None]] = []
        self._sets: dict[tuple[tuple[int, ...], Identity], RuleSet] = {}
        for rule in rules:
            if not rule.enabled or not isinstance(rule.condition, MetricCondition):
                continue
            try:
                match = None if rule.where == ANY else FilterMatch(rule.where)
            except errors.InvalidInput:  # refused when a rule is saved
                self.unusable.append(rule.name)
            else:
                self._rules.append((metric_rule(rule.id, rule.condition), match))

    def __len__(self) -> int:
        """Return the number of usable rules."""
        return len(self._rules)

    def choose(self, target: TargetFacts) -> RuleSet:
        """Return the rules whose filter the target fits."""
        chosen = [rule for rule, match in self._rules if match is None or match.accepts(target)]
        return self._shared(chosen, identity_option(target.options))

    def _shared(self, rules: Sequence[MetricRule], by: Identity) -> RuleSet:
        key = (tuple(rule.id for rule in rules), by)
        return self._sets.setdefault(key, RuleSet(tuple(rules), by))


def metric_rule(rule_id: int, condition: MetricCondition) -> MetricRule:
    """Return the rule of a condition."""
    if isinstance(condition, InterfaceDown):
        days_ms = round(condition.days * DAY_MS)
        return MetricRule(rule_id, Look.STATE, _patterns(condition.labels), days_ms=days_ms)
    if isinstance(condition, CertificateExpiry):
        threshold = Threshold(CERTIFICATE_METRIC, below=condition.days * _DAY_S)
        return MetricRule(rule_id, Look.VALUE, (), threshold, unit=_DAY_S)
    return MetricRule(
        rule_id,
        Look.VALUE if condition.measure is Measure.VALUE else Look.RATE,
        _patterns(condition.labels),
        condition,
        is_percent=condition.measure is Measure.PERCENT_OF_SPEED,
    )


def _patterns(
    labels: Iterable[tuple[str, str]],
) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((label, re.compile(wildcard_expression(text))) for label, text in labels)
