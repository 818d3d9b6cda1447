"""`/api/v1/rules`: what is worth an alert, a check of rules, and a test on history."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller import errors
from poller.domain.alerts import rule_form
from poller.domain.inventory import duration, target_filter
from poller.presentation.alerts import rule_items
from poller.presentation.alerts.rule_items import FiringItem, RuleItem
from poller.service.alerts import rule_actions, rule_replay
from poller.service.alerts.rule_actions import Saved
from poller.web.api.contract import etags, paging, problems, resources
from poller.web.api.contract.etags import IfMatch
from poller.web.api.contract.needs import EditingAll, ReadingAll
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("rules")

RuleName = Annotated[str, Path(max_length=200, description="The name of the rule.")]
_When = Annotated[
    dict[str, Any],
    Field(
        max_length=20,
        description="The condition; `is` names its kind, the other fields depend on it.",
        examples=[{"is": "threshold", "metric": "ifInErrors", "measure": "rate", "above": 1}],
    ),
]
_LONGEST_WORD = 50
#: Seconds after which the test of a rule answers with what it has.
TEST_SECONDS = 20.0
_NULLABLE = "null: the default."


class RuleFields(BaseModel):
    """The fields of a rule that have a default."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    where: str | None = Field(None, max_length=1_000, description=f"A filter. {_NULLABLE}")
    for_: str | None = Field(
        None,
        alias="for",
        max_length=_LONGEST_WORD,
        description=f"How long the condition must hold, such as 5m. {_NULLABLE}",
    )
    keep: str | None = Field(
        None,
        max_length=_LONGEST_WORD,
        description=f"How long the condition must be gone before the end. {_NULLABLE}",
    )
    severity: str | None = Field(
        None, max_length=_LONGEST_WORD, description="info, warning or critical."
    )
    text: str | None = Field(
        None, max_length=500, description=f"A template of names in braces. {_NULLABLE}"
    )
    enabled: bool | None = None

    def given(self) -> dict[str, Any]:
        """The fields that the request has, as people write them."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class NewRule(RuleFields):
    """A rule to be added."""

    name: str = Field(max_length=200)
    when: _When


class RuleEdit(RuleFields):
    """The fields of a rule to be changed; others stay. `when` is replaced as a whole."""

    name: str | None = Field(None, max_length=200, description="The new name.")
    when: _When | None = None


class SavedRule(RuleItem):
    """A rule that was stored, and what looks wrong in it."""

    warnings: list[str] = Field(description="Names that no stored poll has, and the like.")
    note: str


class RulesToCheck(BaseModel):
    """Rules as a file has them; nothing is saved."""

    model_config = ConfigDict(extra="forbid")

    rules: list[dict[str, Any]] = Field(max_length=rule_form.MOST_RULES)


class CheckedRules(BaseModel):
    """The warnings of each rule; none for a rule that looks well."""

    warnings: dict[str, list[str]]


class TestRequest(BaseModel):
    """Which history a rule is tested on."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field("", max_length=200, description="A stored rule; or send `rule`.")
    rule: dict[str, Any] | None = Field(None, description="A rule that need not be stored.")
    since: str = Field("7d", max_length=_LONGEST_WORD, description="How far back.")
    where: str = Field("", max_length=1_000, description="Only devices that match this filter too.")


class TestAnswer(BaseModel):
    """The alerts that there would have been."""

    rule: str
    looked_at: int = Field(description="Targets, devices or sites whose history was read.")
    of: int = Field(description="How many the rule is about.")
    firings: list[FiringItem]
    notes: list[str]


@router.get("", response_model_by_alias=True)
def list_rules(
    call: ReadingAll,
    request: Request,
    response: Response,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[RuleItem]:
    """List the rules by name."""
    key = paging.decode(cursor, str)
    found = sorted(rule_actions.listing(call.services, call.actor), key=lambda each: each.name)
    rest = [each for each in found if key is None or each.name > key[0]]
    last = [rest[limit - 1].name] if len(rest) > limit else None
    following = paging.encode(last)
    paging.link_next(request, response, following)
    return Page(items=[rule_items.item(each) for each in rest[:limit]], next=following)


@router.post("", status_code=201, responses=problems.CHANGING)
def add_rule(call: EditingAll, response: Response, wanted: NewRule) -> SavedRule:
    """Add a rule."""
    saved = rule_actions.add(call.services, call.actor, wanted.given())
    response.headers["Location"] = f"{problems.PREFIX}/rules/{saved.stored.name}"
    return _saved(saved, response)


@router.post("/check", responses=problems.CHANGING)
def check_rules(call: ReadingAll, wanted: RulesToCheck) -> CheckedRules:
    """Check rules and save nothing."""
    found = rule_actions.check(call.services, call.actor, {"rules": wanted.rules})
    return CheckedRules(warnings=found)


@router.post("/test", responses=problems.CHANGING)
def try_rule(call: ReadingAll, wanted: TestRequest) -> TestAnswer:
    """Say when a rule would have fired. It reads history for 20 s at most."""
    if bool(wanted.name) == (wanted.rule is not None):
        raise errors.InvalidInput(
            "name, rule: send one of these", hint='{"name": "device-unreachable"}', field="name"
        )
    if wanted.rule is None:
        rule = rule_actions.chosen(call.services, call.actor, wanted.name)
    else:
        with errors.inside("rule"):
            rule = rule_form.parse(wanted.rule)
    now_ms = time.time_ns() // 1_000_000
    since_ms = max(0, now_ms - duration.parse_ms(wanted.since))
    where = target_filter.parse(wanted.where)
    question = rule_replay.Question(rule, since_ms, now_ms, where, TEST_SECONDS)
    answer = rule_replay.ask(call.services, question)
    texts = [rule_replay.text_of(rule, each) for each in answer.firings]
    found = zip(answer.firings, texts, strict=True)
    return TestAnswer(
        rule=rule.name,
        looked_at=answer.looked_at,
        of=answer.of,
        firings=[rule_items.firing(each, text) for each, text in found],
        notes=answer.notes,
    )


@router.get("/{name}")
def show_rule(call: ReadingAll, response: Response, name: RuleName) -> RuleItem:
    """Show one rule."""
    stored = rule_actions.show(call.services, call.actor, name)
    etags.set_tag(response, stored.tag)
    return rule_items.item(stored)


@router.patch("/{name}", responses=problems.CHANGING)
def edit_rule(
    call: EditingAll, response: Response, name: RuleName, edit: RuleEdit, if_match: IfMatch = None
) -> SavedRule:
    """Change the given fields of a rule. A rule of a file is changed in its file only."""
    expected = etags.expected(if_match)
    saved = rule_actions.edit(call.services, call.actor, name, edit.given(), expected)
    return _saved(saved, response)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_rule(call: EditingAll, name: RuleName, if_match: IfMatch = None) -> None:
    """Remove a rule. A built-in rule is disabled instead; one that replaced it gives it back."""
    rule_actions.remove(call.services, call.actor, name, etags.expected(if_match))


def _saved(saved: Saved, response: Response) -> SavedRule:
    etags.set_tag(response, saved.stored.tag)
    item = rule_items.item(saved.stored).model_dump(by_alias=True)
    return SavedRule(**item, warnings=list(saved.warnings), note=saved.note)
