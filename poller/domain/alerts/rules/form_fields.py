"""The fields of a mapping that people write: read one by one, each refusal names its field.

YAML gives texts and JSON gives numbers, so `80` and `"80"` are the same value here.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from poller import errors
from poller.domain.inventory import duration, naming
from poller.domain.inventory.did_you_mean import nearest

LONGEST_TIME_MS = 7 * 86_400_000
#: Labels that one condition can look at.
MOST_LABELS = 8
LONGEST_LABEL = 200

_Choice = TypeVar("_Choice", bound=enum.StrEnum)
_TRUTHS = {"true": True, "false": False}


class FormFields:
    """A mapping whose keys have been checked. `inside` is the name of the field that holds it."""

    def __init__(self, given: Any, known: Collection[str], inside: str = "") -> None:
        self._inside = inside
        if not isinstance(given, Mapping):
            raise self._refusal("", f"a mapping is expected, not {shown(given)}", _keys(known))
        for key in given:
            if key not in known:
                raise self._unknown(str(key), known)
        self._given = {key: value for key, value in given.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def raw(self, name: str) -> Any:
        """Return the value as it was given, or None."""
        return self._given.get(name)

    def refuse(self, name: str, fault: str, hint: str = "") -> errors.InvalidInput:
        """Return the error for a field."""
        return self._refusal(name, fault, hint)

    def text(self, name: str, longest: int, default: str = "") -> str:
        """Return a text on one line."""
        value = self._given.get(name, default)
        if not isinstance(value, str):
            raise self._refusal(name, f"{shown(value)} is not text", "put it in quotes")
        if len(value) > longest:
            fault = f"it has {len(value)} characters, at most {longest} are allowed"
            raise self._refusal(name, fault, "shorten it")
        if not value.isprintable():
            raise self._refusal(
                name, f"{shown(value)} has a line break or control character", "write one line"
            )
        return value.strip()

    def number(self, name: str, default: float | None, low: float, high: float) -> float | None:
        """Return a number within bounds, or the default."""
        if name not in self._given:
            return default
        value = self._given[name]
        bounds = f"write a number from {low:g} to {high:g}"
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except OverflowError:  # an integer of some hundred digits
            number = math.inf
        except (TypeError, ValueError):
            raise self._refusal(name, f"{shown(value)} is not a number", bounds) from None
        if not low <= number <= high:
            raise self._refusal(name, f"{shown(value)} is out of bounds", bounds)
        return number

    def time_ms(self, name: str) -> int:
        """Return a duration in milliseconds; 0 if it is not given."""
        value = self._given.get(name, 0)
        try:
            parsed = duration.parse_ms(value)
        except errors.InvalidInput as error:
            raise self._refusal(name, error.message, error.hint) from None
        if parsed > LONGEST_TIME_MS:
            longest = duration.format_ms(LONGEST_TIME_MS)
            raise self._refusal(name, f"{value} is too long", f"choose 0s to {longest}")
        return parsed

    def truth(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self._given.get(name, default)
        found = value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
        if found is None:
            raise self._refusal(name, f"{shown(value)} is neither true nor false", "write true")
        return found

    def choice(self, name: str, choices: type[_Choice], default: _Choice | None = None) -> _Choice:
        """Return a member of an enum; without a default, the field is required."""
        members = [member.value for member in choices]
        if name not in self._given:
            if default is None:
                raise self._refusal(name, "it is missing", f"one of {', '.join(members)}")
            return default
        return choices(self.member(name, self._given[name], members))

    def member(self, name: str, value: Any, members: Collection[str]) -> str:
        """Return the value if it is one of these, or refuse it with the nearest one."""
        if isinstance(value, str) and value in members:
            return value
        near = nearest(value, members) if isinstance(value, str) else None
        correction = f"did you mean {near}? " if near else ""
        hint = f"{correction}one of {', '.join(members)}"
        raise self._refusal(name, f"there is no {shown(value)}", hint)

    def names(self, name: str, members: Collection[str]) -> tuple[str, ...]:
        """Return a list of known names, each once; one name alone is a list of one."""
        value = self._given.get(name, ())
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list | tuple):
            raise self._refusal(name, f"{shown(value)} is not a list", "write [timeout, down]")
        return tuple(dict.fromkeys(self.member(name, each, members) for each in listed))

    def labels(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return label names with patterns, in the order of names."""
        value = self._given.get(name, {})
        example = 'write {ifName: "eth*"}'
        if not isinstance(value, Mapping):
            raise self._refusal(name, f"{shown(value)} is not a mapping", example)
        if len(value) > MOST_LABELS:
            raise self._refusal(
                name, f"it has {len(value)} labels, at most {MOST_LABELS} are allowed", "name fewer"
            )
        for label, pattern in value.items():
            is_text = isinstance(label, str) and isinstance(pattern, str)
            if not is_text or not label or not pattern:
                fault = f"{shown(label)}: {shown(pattern)} is not a label with a pattern"
                raise self._refusal(name, fault, example)
            if len(pattern) > LONGEST_LABEL or not pattern.isprintable():
                fault = f"the pattern of {label} is longer than {LONGEST_LABEL}, or has line breaks"
                raise self._refusal(name, fault, example)
        return tuple(sorted(value.items()))

    def _unknown(self, key: str, known: Collection[str]) -> errors.InvalidInput:
        near = nearest(key, known)
        correction = f"did you mean {near}? " if near else ""
        return self._refusal(key, "there is no such field", f"{correction}{_keys(known)}")

    def _refusal(self, name: str, fault: str, hint: str) -> errors.InvalidInput:
        path = ".".join(part for part in (self._inside, naming.printable(name)) if part)
        return errors.InvalidInput(f"{path or 'rule'}: {fault}", hint=hint, field=path)


def shown(value: Any) -> str:
    """Return a value for a message: in quotes if it is text, and not long."""
    text = naming.printable(str(value))
    short = text if len(text) <= 60 else f"{text[:60]}..."
    return f'"{short}"' if isinstance(value, str) else short


def _keys(known: Collection[str]) -> str:
    return f"fields are {', '.join(known)}"
