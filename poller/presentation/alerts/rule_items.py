"""Rules as JSON, for the command line and the API. Fields may be added, never changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from poller.db.alerts.rules.rule_statements import StoredRule
from poller.domain.alerts import text_template
from poller.domain.alerts.rule import Condition, Rule
from poller.domain.alerts.rules import condition_form
from poller.domain.alerts.rules.would_fire import Firing
from poller.domain.inventory import duration, target_filter
from poller.domain.inventory.target_filter import ANY
from poller.presentation.record import instants
from poller.presentation.record.instants import Instant

LIST_SCHEMA = "poller.rules/1"
SCHEMA = "poller.rule/1"
CHECK_SCHEMA = "poller.rules.check/1"
APPLY_SCHEMA = "poller.rules.apply/1"
TEST_SCHEMA = "poller.rules.test/1"


class RuleItem(BaseModel):
    """A rule as it is read. `when` to `enabled` are the fields that people write."""

    name: str
    when: dict[str, Any] = Field(description="The condition; `is` names its kind.")
    where: str = Field(description="A filter; empty: everything.")
    for_: str = Field(
        alias="for", description="How long the condition must hold before the alert fires."
    )
    keep: str = Field(description="How long the condition must be gone before the alert ends.")
    severity: str
    text: str = Field(description="The template of the alert's text; empty: that of the condition.")
    enabled: bool
    owner: str = Field(description="builtin, file:PATH, or who saved the rule.")
    version: int = Field(description="The number of the last change of this rule.")
    updated_at: Instant | None
    condition: str = Field(description="The condition in words.")
    fault: str = Field(description="Why this release cannot use the rule; empty: it can.")


class FiringItem(BaseModel):
    """An alert that there would have been."""

    device: str
    target: str
    site: str
    series: str
    began_at: Instant | None = Field(description="When the condition began.")
    fired_at: Instant | None
    ended_at: Instant | None = Field(description="null: it would still be open.")
    value: float | None
    text: str


def item(stored: StoredRule) -> RuleItem:
    """Return the document of a stored rule."""
    body = stored.body
    return RuleItem(
        **{"for": body.get("for", "0s")},
        name=stored.name,
        when=dict(body["when"]),
        where=body.get("where", ""),
        keep=body.get("keep", "0s"),
        severity=body["severity"],
        text=body.get("text", ""),
        enabled=stored.enabled,
        owner=stored.owner,
        version=stored.version,
        updated_at=instants.of_ms(stored.updated_ms),
        condition=in_words(stored.rule) if stored.rule is not None else "",
        fault=stored.fault,
    )


def firing(found: Firing, text: str) -> FiringItem:
    """Return the document of an alert that there would have been."""
    held = found.held
    return FiringItem(
        device=held.subject.device,
        target=held.subject.target,
        site=held.subject.site,
        series=held.subject.series,
        began_at=instants.of_ms(held.since_ms),
        fired_at=instants.of_ms(found.fired_ms),
        ended_at=instants.of_ms(found.ended_ms),
        value=held.value,
        text=text,
    )


def in_words(rule: Rule) -> str:
    """Return the condition of a rule on one line: `ifHCInOctets percent_of_speed above 80`."""
    words = [_condition_words(rule.condition)]
    if rule.where != ANY:
        words.append(f"where {target_filter.text(rule.where)}")
    if rule.for_ms:
        words.append(f"for {duration.format_ms(rule.for_ms)}")
    return " ".join(words)


def _condition_words(condition: Condition) -> str:
    form = condition_form.to_form(condition)
    kind = form.pop("is")
    if kind != "threshold":
        return " ".join([kind, *_pairs(form)])
    words = [form.pop("metric"), *([form.pop("measure")] if "measure" in form else [])]
    for side in ("above", "below"):
        if side in form:
            words += [side, text_template.value_text(condition, form.pop(side))]
    return " ".join([*words, *_pairs(form)])


def _pairs(form: Mapping[str, Any]) -> Sequence[str]:
    return [f"{key}={_word(value)}" for key, value in form.items()]


def _word(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{part}" for key, part in value.items())
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value)
