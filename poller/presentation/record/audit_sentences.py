"""Rows of the audit log in words: one sentence each, and the fields with what they were and are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from poller.presentation import formatting

#: What a value is called that a field does not have.
NOTHING = "none"
#: The past of verbs that do not follow the rule of `_past`.
_PAST = {
    "drop": "dropped",
    "edit": "changed",
    "forget": "forgot",
    "reset": "reset",
    "revoke": "ended",
    "run": "ran",
}
#: Fields with an instant in milliseconds, and what they are called.
_INSTANTS = {"expires_ms": "expires"}


@dataclass(frozen=True, slots=True)
class Act:
    """One act, as a row of the audit log has it."""

    actor: str
    action: str  # a noun and a verb, such as device.edit
    subject: str
    count: int
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Sentence:
    """`kim` `changed device` `sw1`: who, what, on which name, and the rest."""

    who: str  # "" where the sentence does not begin with the actor
    does: str
    subject: str = ""
    rest: str = ""

    @property
    def text(self) -> str:
        """The whole sentence."""
        parts = (self.who, self.does, self.subject, self.rest)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: its value before and after; "" where the action had none to tell."""

    name: str
    before: str
    after: str

    def text(self, arrow: str) -> str:
        """`role: viewer -> admin`."""
        if self.before and self.after:
            return f"{self.name}: {self.before} {arrow} {self.after}"
        return f"{self.name}: {self.after or self.before}"


def sentence(act: Act) -> Sentence:
    """Return a row as a sentence. An action that nobody foresaw has one, too."""
    if act.action in ("session.login", "session.logout"):
        return Sentence(act.actor, "logged in" if act.action.endswith("in") else "logged out")
    if act.action == "login.refused":
        return Sentence("", "a log-in as", act.subject, "was refused")
    if act.action == "password.refused":
        return Sentence(act.actor, "typed a wrong old password")
    if act.action == "user.password":
        return Sentence(act.actor, "changed the own password")
    if act.action == "device.parents":
        devices = formatting.counted(act.count, "device")
        return Sentence(act.actor, f"set the parents of {devices} by", act.subject)
    if act.action == "credential.open":
        return Sentence(act.actor, "opened credential", act.subject, _purpose(act.after))
    return _regular(act)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[FieldChange]:
    """Return the fields of both documents in their order."""
    return [_change(name, before, after) for name in {**before, **after}]


def _regular(act: Act) -> Sentence:
    """`kim changed device sw1`, `kim polled 120 targets: site:fra`."""
    named, _, verb = act.action.partition(".")
    if not verb:
        return Sentence(act.actor, f"did {named}", act.subject)
    noun = named.replace("_", " ")
    verb, _, of = verb.partition("-")
    if of:
        noun = f"the {of} of"
    if act.count == 1 or of:
        return Sentence(act.actor, f"{_past(verb)} {noun}".strip(), act.subject)
    number = formatting.counted(act.count, noun)
    if act.subject == number:
        return Sentence(act.actor, f"{_past(verb)} {number}")
    return Sentence(act.actor, f"{_past(verb)} {number}:", act.subject)


def _past(verb: str) -> str:
    """The past of a verb: `added`, `removed`, `retried`."""
    if verb in _PAST:
        return _PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in tuple("aeiou"):
        return f"{verb[:-1]}ied"
    return f"{verb}ed"


def _purpose(after: Mapping[str, Any]) -> str:
    return f"for {after['for']}" if after.get("for") else ""


def _change(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> FieldChange:
    return FieldChange(
        _INSTANTS.get(name, name),
        _field_text(name, before[name]) if name in before else "",
        _field_text(name, after[name]) if name in after else "",
    )


def _field_text(name: str, value: Any) -> str:
    if name in _INSTANTS and isinstance(value, int):
        return formatting.instant(value)
    return _text(value)


def _text(value: Any) -> str:
    """A value as people read it. A bulk change counts old values: `true (12), false (3)`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping) and value:
        if all(type(each) is int for each in value.values()):
            return ", ".join(f"{each} ({number:,})" for each, number in value.items())
        return ", ".join(f"{key}={_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple) and value:
        return ", ".join(map(_text, value))
    return str(value) if value or value == 0 else NOTHING
