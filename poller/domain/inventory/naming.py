"""The form of names, tags and requirements.

Each refusal quotes the text and the fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from poller import errors

LONGEST_NAME = 200
LONGEST_WORD = 64

_WORD = re.compile(r"[A-Za-z0-9_.:@+-]+")


def checked_name(text: Any, what: str = "name") -> str:
    """Return the name of a device, target, site or credential. Raises InvalidInput.

    A name is printable and has no blanks and no slashes.
    """
    if not isinstance(text, str):
        raise errors.InvalidInput(f"the {what} must be text, not {text!r}", hint="put it in quotes")
    if not text:
        raise errors.InvalidInput(f"the {what} is empty")
    if len(text) > LONGEST_NAME:
        raise errors.InvalidInput(
            f"the {what} has {len(text)} characters, at most {LONGEST_NAME} are allowed"
        )
    for character in text:
        if not character.isprintable() or character.isspace() or character in "/\\":
            raise errors.InvalidInput(
                f'the {what} "{printable(text)}" contains {_spelled(character)}',
                hint="use - or . instead",
            )
    if text.startswith("-"):
        raise errors.InvalidInput(
            f'the {what} "{text}" starts with -, it would be taken for an option'
        )
    return text


def parse_requirements(pairs: Mapping[str, Any] | Iterable[str]) -> dict[str, str]:
    """Return the tags a worker must have, from a mapping or `key=value` words.

    Raises InvalidInput.
    """
    items = pairs.items() if isinstance(pairs, Mapping) else [_split(pair) for pair in pairs]
    required: dict[str, str] = {}
    for key, value in items:
        fault = tag_fault(key, value)
        if fault:
            shown = printable(f"{key}={value}")
            raise errors.InvalidInput(
                f'the requirement "{shown}" is not of the form key=value',
                cause=fault,
                hint="for example site=ams",
            )
        if required.setdefault(key, value) != value:
            raise errors.InvalidInput(
                f'the requirement "{key}" is given twice: {required[key]} and {value}'
            )
    return required


def checked_tags(words: Iterable[Any]) -> tuple[str, ...]:
    """Return the tags of a device, sorted, each once. Raises InvalidInput."""
    for word in words:
        fault = word_fault(word)
        if fault:
            shown = printable(str(word))
            raise errors.InvalidInput(f'the tag "{shown}" is not one word', cause=fault)
    return tuple(sorted(set(words)))


def tag_fault(key: Any, value: Any) -> str:
    """Return the fault of the key or the value in `key=value`, empty if both are valid."""
    for what, part in (("key", key), ("value", value)):
        fault = word_fault(part)
        if fault:
            return f"the {what} {fault}"
    return ""


def word_fault(text: Any) -> str:
    """Return the fault of a word for a queue name, empty if the word is valid."""
    if not isinstance(text, str):
        return f"is {printable(repr(text))}, not text: put it in quotes"
    if not text:
        return "is empty"
    if len(text) > LONGEST_WORD:
        return f"has {len(text)} characters, at most {LONGEST_WORD} are allowed"
    for character in text:
        if not _WORD.fullmatch(character):
            return f"contains {_spelled(character)}: letters, digits and _ . : @ + - only"
    return ""


def printable(text: str) -> str:
    """Return a text for a message, with escapes for characters that act on a terminal."""
    if text.isprintable():
        return text
    return text.encode("unicode_escape").decode()


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals:
        shown = printable(pair)
        raise errors.InvalidInput(
            f'"{shown}" is not of the form key=value',
            hint="for example site=ams",
        )
    return key, value


def _spelled(character: str) -> str:
    if character.isspace():
        return "a blank"
    return f'"{character}"' if character.isprintable() else "an unprintable character"
