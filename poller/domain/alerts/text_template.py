"""The text of an alert: names in braces become names and numbers. There is no code in it.

`{device} {series}: {value}, {label:ifAlias}`; `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from poller import errors
from poller.domain.alerts.alert import Subject
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
    SiteDark,
    TargetFailing,
    Threshold,
)
from poller.domain.inventory.did_you_mean import nearest

NAMES = ("device", "target", "site", "series", "value", "threshold", "rule", "severity")
LABEL = "label:"
LONGEST_TEMPLATE = 500
LONGEST_TEXT = 1_000
#: Characters of one inserted value: labels come from devices.
LONGEST_VALUE = 200

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]*")


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """The facts that a text can say of an alert."""

    subject: Subject
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


def check(template: str) -> None:
    """Raise InvalidInput for a name that does not exist, and for a brace without its other."""
    for token in _TOKEN.finditer(template):
        if token[0] in ("{{", "}}"):
            continue
        if token[1] is None:
            raise errors.InvalidInput(
                f'text: the brace "{token[0]}" at character {token.start() + 1} stands alone',
                hint="write {{ or }} for a brace itself",
                field="text",
            )
        _refuse_unknown(token[1])


def labels_of(template: str) -> tuple[str, ...]:
    """Return the labels that a checked template names."""
    named = [token[1] for token in _TOKEN.finditer(template) if token[1] is not None]
    return tuple(name.removeprefix(LABEL) for name in named if name.startswith(LABEL))


def render(rule: Rule, facts: AlertFacts) -> str:
    """Return the text of an alert: the rule's own, or that of its condition.

    What is not known is left empty. Line breaks and control characters of devices become blanks.
    """
    template = rule.text or default_text(rule.condition)

    def inserted(token: re.Match[str]) -> str:
        if token[1] is None:
            return token[0][0]
        return _clean(_value(rule, facts, token[1]))

    text = " ".join(_TOKEN.sub(inserted, template).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def default_text(condition: Condition) -> str:
    """Return the template of a condition, for rules that have none."""
    match condition:
        case DeviceUnreachable():
            return "{device} is unreachable"
        case SiteDark():
            return "site {site} is dark"
        case TargetFailing():
            return "{device} {target} fails: {label:code}"
        case NoData():
            return "{device} {target} has no data"
        case InterfaceDown():
            return "{device} {series} is down {label:ifAlias}"
        case CertificateExpiry():
            return "the certificate of {device} {target} ends in {value}"
        case PlatformTrouble(problem):
            return _PLATFORM_TEXTS[problem]
        case Threshold():
            side = "above" if condition.above is not None else "below"
            metric = condition.metric.replace("{", "{{").replace("}", "}}")
            return f"{{device}} {{series}} {metric} is {{value}}, {side} {{threshold}}"


def value_text(condition: Condition, value: float | None) -> str:
    """Return a number with the unit of its condition: `83.4 %`, `1.25 M/s`, `13 days`."""
    if value is None:
        return ""
    match condition:
        case CertificateExpiry():
            days = f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"
            return f"{days} days"
        case Threshold(measure=Measure.PERCENT_OF_SPEED):
            return f"{value:.1f} %".replace(".0 ", " ")
        case Threshold(measure=Measure.RATE):
            return f"{_with_prefix(value)}/s"
        case _:
            return f"{value:.6g}"


def _value(rule: Rule, facts: AlertFacts, name: str) -> str:
    if name.startswith(LABEL):
        return facts.labels.get(name.removeprefix(LABEL), "")
    if name == "value":
        return value_text(rule.condition, facts.value)
    if name == "threshold":
        return value_text(rule.condition, threshold_of(rule.condition))
    if name == "rule":
        return rule.name
    if name == "severity":
        return rule.severity.value
    return str(getattr(facts.subject, name))


def threshold_of(condition: Condition) -> float | None:
    """Return the number that a condition compares with."""
    match condition:
        case Threshold(above=above, below=below):
            return above if above is not None else below
        case CertificateExpiry(days) | InterfaceDown(days=days):
            return days
        case NoData(intervals):
            return intervals
        case _:
            return None


def _with_prefix(value: float) -> str:
    for factor, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g} "


def _clean(text: str) -> str:
    printable = "".join(each if each.isprintable() else " " for each in text[:LONGEST_VALUE])
    return printable.strip()


def _refuse_unknown(name: str) -> None:
    if name in NAMES:
        return
    if name.startswith(LABEL) and _LABEL_NAME.fullmatch(name.removeprefix(LABEL)):
        return
    known: Sequence[str] = (*NAMES, "label:ifAlias")
    near = nearest(name, known)
    correction = f"did you mean {{{near}}}? " if near else ""
    listed = ", ".join(f"{{{each}}}" for each in NAMES)
    raise errors.InvalidInput(
        f"text: there is no {{{name[:60]}}}",
        hint=f"{correction}names are {listed} and {{label:NAME}}",
        field="text",
    )


_PLATFORM_TEXTS: Mapping[PlatformProblem, str] = {
    PlatformProblem.NO_LEADER: "no scheduler led for a while: nothing was polled",
    PlatformProblem.CAPACITY_SHORT: "workers cannot keep up with the polls of {series}",
    PlatformProblem.SINK_BEHIND: "sink {series} is behind",
    PlatformProblem.JOB_OVERDUE: "job {series} is overdue",
    PlatformProblem.WORKER_LOST: "worker {series} is gone",
}
