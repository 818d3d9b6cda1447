"""Prometheus' `relabel_configs`: the rules by which a discovered target gets its labels."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import re2

from poller import errors
from poller.domain import expressions

Labels = dict[str, str]

_MODULUS_BYTES = 8
_LONGEST_MODULUS = 18  # digits
_REFERENCE = re2.compile(r"\$(?:\$|(\w+)|\{(\w+)\})")
#: Actions that Prometheus has, and those among them that need a target label.
ACTIONS = (
    "replace",
    "keep",
    "drop",
    "keepequal",
    "dropequal",
    "hashmod",
    "labelmap",
    "labeldrop",
    "labelkeep",
    "lowercase",
    "uppercase",
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Defaults are those of Prometheus."""

    action: str = "replace"
    source_labels: tuple[str, ...] = ()
    separator: str = ";"
    regex: str = "(.*)"
    modulus: int = 0
    target_label: str = ""
    replacement: str = "$1"

    @classmethod
    def of(cls, fields: Mapping[str, Any], where: str) -> Rule:
        """Return the rule of a mapping. Raises InvalidInput, which names the place."""
        known = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        known = {name: value for name, value in known.items() if value is not None}
        for name, value in known.items():
            known[name] = _checked(name, value, f"{where}, {name}")
        rule = cls(**known)
        if rule.action.lower() not in ACTIONS:
            raise errors.InvalidInput(
                f'{where}: unknown action "{rule.action}"', hint=", ".join(ACTIONS)
            )
        rule.pattern(where)
        return rule

    def pattern(self, where: str = "regex") -> Any:
        """Return the compiled expression. Raises InvalidInput."""
        try:
            return expressions.compiled(self.regex)
        except ValueError as error:
            raise errors.InvalidInput(
                f'{where}: the expression "{self.regex}" cannot be used', cause=str(error)
            ) from None

    def joined(self, labels: Mapping[str, str]) -> str:
        """Return the values of the source labels in one text."""
        return self.separator.join(labels.get(name, "") for name in self.source_labels)


def _checked(name: str, value: Any, where: str) -> Any:
    """Return the value of a field. Raises InvalidInput for one of another type."""
    if name == "source_labels":
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise errors.InvalidInput(f"{where}: this is no list of labels")
    if not isinstance(value, str):
        raise errors.InvalidInput(f"{where}: this is no text")
    if name != "modulus":
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= _LONGEST_MODULUS):
        raise errors.InvalidInput(f"{where}: this is no whole number")
    return int(value)


def relabel(labels: Mapping[str, str], rules: Iterable[Rule]) -> Labels | None:
    """Return the labels after all rules; None if a rule drops the target."""
    found = dict(labels)
    for rule in rules:
        changed = _DEEDS[rule.action.lower()](rule, found)
        if changed is None:
            return None
        found = {name: text for name, text in changed.items() if text}
    return found


def _replace(rule: Rule, labels: Labels) -> Labels:
    match = rule.pattern().fullmatch(rule.joined(labels))
    if match is None:
        return labels
    name = _expanded(rule.target_label, match)
    return {**labels, name: _expanded(rule.replacement, match)} if name else labels


def _keep(rule: Rule, labels: Labels, wanted: bool) -> Labels | None:
    fits = rule.pattern().fullmatch(rule.joined(labels)) is not None
    return labels if fits is wanted else None


def _equal(rule: Rule, labels: Labels, wanted: bool) -> Labels | None:
    is_equal = rule.joined(labels) == labels.get(rule.target_label, "")
    return labels if is_equal is wanted else None


def _hashmod(rule: Rule, labels: Labels) -> Labels:
    digest = hashlib.md5(rule.joined(labels).encode(), usedforsecurity=False).digest()
    number = int.from_bytes(digest[-_MODULUS_BYTES:], "big")
    return {**labels, rule.target_label: str(number % max(1, rule.modulus))}


def _labelmap(rule: Rule, labels: Labels) -> Labels:
    found = dict(labels)
    for name, text in labels.items():
        match = rule.pattern().fullmatch(name)
        if match is not None:
            found[_expanded(rule.replacement, match)] = text
    return found


def _select_names(rule: Rule, labels: Labels, wanted: bool) -> Labels:
    pattern = rule.pattern()
    return {
        name: text
        for name, text in labels.items()
        if (pattern.fullmatch(name) is not None) is wanted
    }


def _cased(rule: Rule, labels: Labels, change: Callable[[str], str]) -> Labels:
    return {**labels, rule.target_label: change(rule.joined(labels))}


def _expanded(template: str, match: Any) -> str:
    """Return a template with the groups of a match, as Go's Regexp.Expand makes it."""

    def group(reference: Any) -> str:
        name = reference.group(1) or reference.group(2)
        if name is None:
            return "$"
        try:
            return match.group(int(name) if name.isdigit() else name) or ""
        except (IndexError, KeyError):
            return ""

    parts = []
    end = 0
    for reference in _REFERENCE.finditer(template):
        parts += [template[end : reference.start()], group(reference)]
        end = reference.end()
    return "".join([*parts, template[end:]])


_DEEDS: Mapping[str, Callable[[Rule, Labels], Labels | None]] = {
    "replace": _replace,
    "keep": partial(_keep, wanted=True),
    "drop": partial(_keep, wanted=False),
    "keepequal": partial(_equal, wanted=True),
    "dropequal": partial(_equal, wanted=False),
    "hashmod": _hashmod,
    "labelmap": _labelmap,
    "labeldrop": partial(_select_names, wanted=False),
    "labelkeep": partial(_select_names, wanted=True),
    "lowercase": partial(_cased, change=str.lower),
    "uppercase": partial(_cased, change=str.upper),
}
