"""The text of an alert: names and numbers, no code, and nothing that a device can break."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.domain.alerts import text_template
from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import (
    CertificateExpiry,
    Condition,
    Measure,
    Rule,
    Severity,
    Threshold,
)
from poller.domain.alerts.rules import builtin_rules
from poller.domain.alerts.text_template import AlertFacts

SUBJECT = Subject(1, 2, "sw1", "snmp", "ams", "ifName=eth0")
FULL = Threshold("ifHCInOctets", Measure.PERCENT_OF_SPEED, above=80.0)


def rendered(text: str, condition: Condition = FULL, value: float | None = 83.42) -> str:
    rule = Rule("full", condition, Severity.CRITICAL, text=text)
    return text_template.render(rule, AlertFacts(SUBJECT, value, {"ifAlias": "to ber"}))


def test_names_become_what_they_name() -> None:
    """Every name has its value; a label that is not there is empty."""
    text = (
        "{device}/{target} at {site}, {series}: {value} over {threshold} ({rule}, {severity}) "
        "{label:ifAlias}{label:other}"
    )
    assert rendered(text) == (
        "sw1/snmp at ams, ifName=eth0: 83.4 % over 80 % (full, critical) to ber"
    )


def test_doubled_braces_are_braces() -> None:
    """A text can have a brace."""
    assert rendered("{{{device}}}") == "{sw1}"


@pytest.mark.parametrize(
    ("condition", "value", "text"),
    [
        (FULL, 100.0, "100 %"),
        (Threshold("x", Measure.RATE, above=1.0), 1_250_000.0, "1.25 M/s"),
        (Threshold("x", Measure.RATE, above=1.0), 0.5, "0.5 /s"),
        (Threshold("x", above=1.0), 61.25, "61.25"),
        (CertificateExpiry(), 13.6, "14 days"),
        (CertificateExpiry(), 2.46, "2.5 days"),
        (FULL, None, ""),
    ],
)
def test_a_number_has_the_unit_of_its_condition(
    condition: Condition, value: float | None, text: str
) -> None:
    """People read the unit with the number."""
    assert rendered("{value}", condition, value) == text


@pytest.mark.parametrize(
    "text",
    [
        "{device.__class__}",
        "{0}",
        "{}",
        "{device!r}",
        "{value:>10}",
        "{label:}",
        "{label:a b}",
        "{device",
        "device}",
        "{{device}",
    ],
)
def test_whatever_is_no_name_is_refused(text: str) -> None:
    """Attributes, positions and formats of Python's own templates have no meaning here."""
    with pytest.raises(errors.InvalidInput) as refused:
        text_template.check(text)
    assert refused.value.field == "text"
    assert refused.value.hint


def test_what_a_device_says_cannot_break_the_text() -> None:
    """Line breaks become blanks and braces stay: a label is never a template, nor a header."""
    rule = Rule("x", FULL, text="{label:ifAlias}!")
    labels = {"ifAlias": "a\r\nBcc: b\x1b[31m {value}" + "x" * 500}
    text = text_template.render(rule, AlertFacts(SUBJECT, 1.0, labels))
    assert text.startswith("a Bcc: b [31m {value}xxx")
    assert len(text) == text_template.LONGEST_VALUE


@given(st.text(max_size=80).filter(str.isprintable))
def test_a_template_that_is_accepted_can_be_rendered(text: str) -> None:
    """A check when saving is enough: rendering never fails."""
    try:
        text_template.check(text)
    except errors.InvalidInput:
        return
    assert rendered(text).isprintable()


@pytest.mark.parametrize("rule", builtin_rules.rules(), ids=lambda rule: rule.name)
def test_every_condition_has_a_text_of_its_own(rule: Rule) -> None:
    """A rule without a text says what is wrong with what."""
    template = rule.text or text_template.default_text(rule.condition)
    text_template.check(template)
    subject = Subject(1, 2, "sw1", "snmp", "ams", "ifName=eth0")
    text = text_template.render(rule, AlertFacts(subject, 91.0, {"code": "timeout"}))
    assert "{" not in text
    assert any(word in text for word in ("sw1", "ams", "ifName=eth0", "nothing was polled"))


def test_the_labels_of_a_template_are_known() -> None:
    """The check of a rule looks for them in stored polls."""
    assert text_template.labels_of("{label:a} {device} {{label:b}} {label:c}") == ("a", "c")
