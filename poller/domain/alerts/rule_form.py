"""Rules as people write them: one mapping, the same in YAML, in JSON and in the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from poller import errors
from poller.domain.alerts import text_template
from poller.domain.alerts.rule import (
    Condition,
    DeviceUnreachable,
    PlatformTrouble,
    Rule,
    Severity,
    SiteDark,
)
from poller.domain.alerts.rules import condition_form
from poller.domain.alerts.rules.form_fields import FormFields, shown
from poller.domain.inventory import duration, naming, target_filter
from poller.domain.inventory.filter_match import FilterMatch
from poller.domain.inventory.target_filter import ANY, TargetFilter

FIELDS = ("name", "when", "where", "for", "keep", "severity", "text", "enabled")
LONGEST_WHERE = 1_000
#: Rules of one file, and of one database.
MOST_RULES = 1_000


def parse(given: Any, owner: str = "") -> Rule:
    """Return the checked rule of a mapping.

    Raises InvalidInput, which names the field, what was wrong and what to do.
    """
    fields = FormFields(given, FIELDS)
    try:
        name = naming.checked_name(fields.raw("name") or "")
    except errors.InvalidInput as error:
        hint = error.hint or "for example uplink-full"
        raise fields.refuse("name", error.message, hint) from None
    if "when" not in fields:
        hint = "for example when: {is: device_unreachable}"
        raise fields.refuse("when", "it is missing", hint)
    condition = condition_form.parse(fields.raw("when"))
    text = fields.text("text", text_template.LONGEST_TEMPLATE)
    text_template.check(text)
    return Rule(
        name=name,
        condition=condition,
        severity=fields.choice("severity", Severity, Severity.WARNING),
        where=_where(fields, condition),
        for_ms=fields.time_ms("for"),
        keep_ms=fields.time_ms("keep"),
        text=text,
        owner=owner,
        enabled=fields.truth("enabled", default=True),
    )


def parse_all(given: Any, owner: str = "") -> list[Rule]:
    """Return the rules of a whole document: a list, or a mapping with a list `rules`.

    Raises InvalidInput; its field begins with the position of the rule: `rules.2.when.above`.
    """
    listed = FormFields(given, ("rules",)).raw("rules") if isinstance(given, Mapping) else given
    if not isinstance(listed, list):
        raise errors.InvalidInput(
            f"rules: a list of rules is expected, not {shown(listed)}",
            hint="write rules: and a line - name: ... for each rule; rules: [] for none",
            field="rules",
        )
    if len(listed) > MOST_RULES:
        fault = f"rules: there are {len(listed)}, at most {MOST_RULES} are allowed"
        raise errors.InvalidInput(fault, hint="let one rule match more devices", field="rules")
    rules: dict[str, Rule] = {}
    for number, each in enumerate(listed):
        with _named(number, each):
            rule = parse(each, owner)
            if rule.name in rules:
                raise errors.InvalidInput(
                    "name: an earlier rule has it too", hint="rename one of them", field="name"
                )
        rules[rule.name] = rule
    return list(rules.values())


def to_form(rule: Rule) -> dict[str, Any]:
    """Return the mapping of a rule, without fields that have their default."""
    form: dict[str, Any] = {"name": rule.name, "when": condition_form.to_form(rule.condition)}
    if rule.where != ANY:
        form["where"] = target_filter.text(rule.where)
    if rule.for_ms:
        form["for"] = duration.format_ms(rule.for_ms)
    if rule.keep_ms:
        form["keep"] = duration.format_ms(rule.keep_ms)
    form["severity"] = rule.severity.value
    if rule.text:
        form["text"] = rule.text
    if not rule.enabled:
        form["enabled"] = False
    return form


@contextmanager
def _named(number: int, given: Any) -> Iterator[None]:
    """Say in an error which rule of a list it is about."""
    name = given.get("name") if isinstance(given, Mapping) else None
    which = f"rule {number + 1} ({shown(name)})" if name else f"rule {number + 1}"
    try:
        yield
    except errors.InvalidInput as error:
        path = f"rules.{number}.{error.field}" if error.field else f"rules.{number}"
        message = f"{which}: {error.message}"
        raise errors.InvalidInput(message, error.cause, error.hint, field=path) from None


def _where(fields: FormFields, condition: Condition) -> TargetFilter:
    """Return the filter of a rule. Raises InvalidInput for keys that can never match."""
    text = fields.text("where", LONGEST_WHERE)
    try:
        wanted = target_filter.parse(text) if text else ANY
        FilterMatch(wanted)
    except errors.InvalidInput as error:
        raise fields.refuse("where", error.message, error.hint) from None
    if isinstance(condition, PlatformTrouble) and wanted != ANY:
        fault = "the platform has no devices, so a filter cannot match it"
        raise fields.refuse("where", fault, "leave where out")
    if isinstance(condition, SiteDark) and wanted != TargetFilter(sites=wanted.sites):
        raise fields.refuse("where", "a dark site is found by its name only", "write site:NAME")
    if isinstance(condition, DeviceUnreachable) and wanted.selects_targets:
        fault = "the rule is about whole devices; collector and option select targets"
        raise fields.refuse("where", fault, "use site, tag, name and address")
    return wanted
