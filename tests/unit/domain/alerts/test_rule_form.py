"""Rules as people write them: what is read, what is refused, and what the refusal says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.domain.alerts import rule_form
from poller.domain.alerts.rule import (
    CertificateExpiry,
    Condition,
    DeviceUnreachable,
    InterfaceDown,
    Measure,
    NoData,
    PlatformProblem,
    PlatformTrouble,
    Rule,
    Severity,
    SiteDark,
    TargetFailing,
    Threshold,
)
from poller.domain.alerts.rules import builtin_rules, condition_form
from poller.domain.failures import error_codes
from poller.domain.inventory.target_filter import TargetFilter

UPLINK: dict[str, Any] = {
    "name": "uplink-full",
    "when": {
        "is": "threshold",
        "metric": "ifHCInOctets",
        "measure": "percent_of_speed",
        "above": 80,
        "clear": 70,
        "labels": {"ifName": "eth*"},
    },
    "where": "tag:core",
    "for": "5m",
    "keep": "90s",
    "severity": "critical",
    "text": "{device} {series}: {value} in {label:ifAlias}",
}


def test_a_rule_is_read() -> None:
    """Every field of the mapping gets to the rule."""
    rule = rule_form.parse(UPLINK, "file:/a.yaml")
    assert rule == Rule(
        name="uplink-full",
        condition=Threshold(
            "ifHCInOctets", Measure.PERCENT_OF_SPEED, 80.0, None, 70.0, (("ifName", "eth*"),)
        ),
        severity=Severity.CRITICAL,
        where=TargetFilter(tags=("core",)),
        for_ms=300_000,
        keep_ms=90_000,
        text="{device} {series}: {value} in {label:ifAlias}",
        owner="file:/a.yaml",
    )


def test_texts_of_yaml_and_numbers_of_json_are_the_same() -> None:
    """A reader of YAML that keeps scalars as texts gives the same rule."""
    texts = {
        **UPLINK,
        "when": {**UPLINK["when"], "above": "80", "clear": "70.0"},
        "enabled": "false",
    }
    numbers = {**UPLINK, "enabled": False}
    assert rule_form.parse(texts) == rule_form.parse(numbers)


@pytest.mark.parametrize(
    ("when", "condition"),
    [
        ({"is": "device_unreachable"}, DeviceUnreachable()),
        ({"is": "site_dark"}, SiteDark()),
        ({"is": "target_failing"}, TargetFailing()),
        (
            {"is": "target_failing", "codes": ["timeout", "down"]},
            TargetFailing(("timeout", "down")),
        ),
        ({"is": "target_failing", "codes": "timeout"}, TargetFailing(("timeout",))),
        ({"is": "no_data"}, NoData(5.0)),
        ({"is": "no_data", "intervals": 3}, NoData(3.0)),
        ({"is": "interface_down"}, InterfaceDown(7.0)),
        (
            {"is": "interface_down", "days": 1, "labels": {"ifAlias": "UP*"}},
            InterfaceDown(1.0, (("ifAlias", "UP*"),)),
        ),
        ({"is": "threshold", "metric": "x", "below": -1}, Threshold("x", below=-1.0)),
        ({"is": "certificate_expiry", "days": 21}, CertificateExpiry(21.0)),
        (
            {"is": "platform_trouble", "problem": "sink_behind"},
            PlatformTrouble(PlatformProblem.SINK_BEHIND),
        ),
    ],
)
def test_every_condition_is_read(when: dict[str, Any], condition: Condition) -> None:
    """Fields that are left out have their defaults."""
    assert rule_form.parse({"name": "x", "when": when}).condition == condition


REFUSED: list[tuple[dict[str, Any], str, str, str]] = [
    ({"name": None}, "name", "the name is empty", "uplink-full"),
    ({"name": "a b"}, "name", "contains a blank", "use - or ."),
    ({"when": None}, "when", "it is missing", "device_unreachable"),
    ({"when": "rate(x) > 1"}, "when", "a mapping is expected", "is"),
    ({"when": {"metric": "x", "above": 1}}, "when.is", "it is missing", "is: threshold"),
    ({"when": {"is": "treshold"}}, "when.is", 'no "treshold"', "did you mean threshold?"),
    ({"when": {"is": "no_data", "days": 2}}, "when.days", "no such field", "intervals"),
    ({"when": {"is": "no_data", "intervals": 1}}, "when.intervals", "out of bounds", "from 2"),
    (
        {"when": {"is": "threshold", "above": 1}},
        "when.metric",
        "it is missing",
        "a metric of a series",
    ),
    ({"when": {"is": "threshold", "metric": "x"}}, "when.above", "it is missing", "below: 10"),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 1, "below": 2}},
        "when.above",
        "not both",
        "two rules",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": "high"}},
        "when.above",
        '"high" is not a number',
        "write a number",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": True}},
        "when.above",
        "out of bounds",
        "write a number",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": "nan"}},
        "when.above",
        "out of bounds",
        "write a number",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 10**400}},
        "when.above",
        "out of bounds",
        "write a number",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 80, "clear": 90}},
        "when.clear",
        "90 is more than above, 80",
        "up to 80",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "below": 10, "clear": 5}},
        "when.clear",
        "5 is less than below, 10",
        "from 10",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 1, "measure": "rates"}},
        "when.measure",
        'no "rates"',
        "did you mean rate?",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 1, "labels": ["ifName"]}},
        "when.labels",
        "is not a mapping",
        "ifName",
    ),
    (
        {"when": {"is": "threshold", "metric": "x", "above": 1, "labels": {"ifName": ""}}},
        "when.labels",
        "is not a label with a pattern",
        "ifName",
    ),
    (
        {"when": {"is": "target_failing", "codes": ["timeuot"]}},
        "when.codes",
        'no "timeuot"',
        "did you mean timeout?",
    ),
    ({"severity": "crit"}, "severity", 'no "crit"', "info, warning, critical"),
    ({"for": "5 min"}, "for", '"5 min" is not a duration', "write 5m"),
    ({"keep": "8d"}, "keep", "too long", "7d"),
    ({"where": "tags:core"}, "where", 'no key "tags"', "did you mean tag?"),
    ({"where": "state:failing"}, "where", "states change with every poll", "site, tag"),
    ({"where": 3}, "where", "3 is not text", "quotes"),
    ({"text": "{devise} is down"}, "text", "no {devise}", "{device}"),
    ({"text": "a } b"}, "text", 'the brace "}" at character 3', "}}"),
    ({"text": "two\nlines"}, "text", "line break", "one line"),
    ({"enabled": "maybe"}, "enabled", "neither true nor false", "true"),
    ({"severty": "info"}, "severty", "no such field", "did you mean severity?"),
    (
        {"when": {"is": "device_unreachable"}, "where": "collector:snmp"},
        "where",
        "whole devices",
        "site, tag",
    ),
    ({"when": {"is": "site_dark"}, "where": "tag:core"}, "where", "by its name", "site:NAME"),
    (
        {"when": {"is": "platform_trouble", "problem": "no_leader"}, "where": "tag:core"},
        "where",
        "no devices",
        "leave where out",
    ),
]


@pytest.mark.parametrize(("change", "field", "message", "hint"), REFUSED)
def test_a_refusal_names_the_field_the_fault_and_the_fix(
    change: dict[str, Any], field: str, message: str, hint: str
) -> None:
    """The error is about one field, and its hint says what can be written."""
    with pytest.raises(errors.InvalidInput) as refused:
        rule_form.parse({**UPLINK, **change})
    assert refused.value.field == field
    assert message in refused.value.message
    assert hint in refused.value.hint


@pytest.mark.parametrize("document", [[UPLINK], {"rules": [UPLINK]}])
def test_a_document_is_a_list_or_a_mapping(document: Any) -> None:
    """Both forms of a file have the same rules."""
    assert rule_form.parse_all(document) == [rule_form.parse(UPLINK)]


def test_an_error_in_a_document_names_the_rule() -> None:
    """The place of the rule is in the field, its name in the message."""
    wrong = {**UPLINK, "name": "other", "for": "soon"}
    with pytest.raises(errors.InvalidInput) as refused:
        rule_form.parse_all({"rules": [UPLINK, wrong]})
    assert refused.value.field == "rules.1.for"
    assert refused.value.message.startswith('rule 2 ("other"): for: "soon" is not a duration')


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (None, "rules"),
        ("rules", "rules"),
        ({"rules": {}}, "rules"),
        ({}, "rules"),
        ({"rule": []}, "rule"),
        ({"rules": ["x"]}, "rules.0"),
        ({"rules": [UPLINK, UPLINK]}, "rules.1.name"),
        ({"rules": [UPLINK] * (rule_form.MOST_RULES + 1)}, "rules"),
    ],
)
def test_a_document_of_another_form_is_refused(document: Any, field: str) -> None:
    """No rules, other keys, a name that is given twice, and too many rules."""
    with pytest.raises(errors.InvalidInput) as refused:
        rule_form.parse_all(document)
    assert refused.value.field == field


def test_an_empty_list_has_no_rules() -> None:
    """A file with `rules: []` removes the rules of that file, so it must be valid."""
    assert rule_form.parse_all({"rules": []}) == []


def test_a_form_has_no_field_with_a_default() -> None:
    """What is stored and shown is as short as what people write."""
    plain = {"name": "x", "when": {"is": "device_unreachable"}, "severity": "warning"}
    assert rule_form.to_form(rule_form.parse(plain)) == plain
    assert rule_form.to_form(rule_form.parse(UPLINK)) == {**UPLINK, "keep": "1m30s"}


_LABELS = st.dictionaries(
    st.sampled_from(["ifName", "ifAlias"]), st.sampled_from(["eth*", "x"]), max_size=2
)
_NUMBER = st.floats(-1e9, 1e9, allow_nan=False)


@st.composite
def _conditions(draw: st.DrawFn) -> Condition:
    labels = tuple(sorted(draw(_LABELS).items()))
    above = draw(_NUMBER)
    clear = draw(st.none() | st.floats(-1e9, above, allow_nan=False))
    codes = tuple(draw(st.lists(st.sampled_from(sorted(error_codes.TABLE)), unique=True)))
    choices: list[Condition] = [
        DeviceUnreachable(),
        SiteDark(),
        TargetFailing(codes),
        NoData(draw(st.floats(2, 1000))),
        InterfaceDown(draw(st.floats(0.01, 90)), labels),
        Threshold("m", draw(st.sampled_from(Measure)), above, None, clear, labels),
        CertificateExpiry(draw(st.floats(0, 3650))),
        PlatformTrouble(draw(st.sampled_from(PlatformProblem))),
    ]
    return draw(st.sampled_from(choices))


@given(
    condition=_conditions(),
    severity=st.sampled_from(Severity),
    for_ms=st.integers(0, 7 * 86_400_000),
    keep_ms=st.integers(0, 7 * 86_400_000),
    enabled=st.booleans(),
)
def test_every_rule_survives_its_form(
    condition: Condition, severity: Severity, for_ms: int, keep_ms: int, enabled: bool
) -> None:
    """A rule that is written and read again is the same rule."""
    rule = Rule(
        "x", condition, severity, for_ms=for_ms, keep_ms=keep_ms, text="{value}", enabled=enabled
    )
    assert rule_form.parse(rule_form.to_form(rule)) == rule


def test_the_built_in_rules_are_enabled_but_for_that_of_interfaces() -> None:
    """A switch with desks behind it must not page every evening."""
    off = [rule.name for rule in builtin_rules.rules() if not rule.enabled]
    assert off == ["interface-down"]
    kinds = {condition_form.kind_of(rule.condition) for rule in builtin_rules.rules()}
    assert kinds == set(condition_form.KINDS)
    problems = [rule.condition for rule in builtin_rules.rules()]
    assert {each.problem for each in problems if isinstance(each, PlatformTrouble)} == set(
        PlatformProblem
    )
