"""What may names, addresses, tags and requirements look like? Each refusal says which text and why."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from poller import errors

LONGEST_NAME = 200
LONGEST_WORD = 64

_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)")
_WORD = re.compile(r"[A-Za-z0-9_.:@+-]+")


def name(text: Any, what: str = "name") -> str:
    """A name of a device, target, site or credential: printable, without blanks and slashes."""
    if not isinstance(text, str):
        raise errors.InvalidInput(f"the {what} must be text, not {text!r}", hint="put it in quotes")
    if not text:
        raise errors.InvalidInput(f"the {what} is empty")
    if len(text) > LONGEST_NAME:
        raise errors.InvalidInput(
            f"the {what} has {len(text)} characters, at most {LONGEST_NAME} are allowed"
        )
    odd = next((c for c in text if not c.isprintable() or c.isspace() or c in "/\\"), None)
    if odd is not None:
        raise errors.InvalidInput(
            f'the {what} "{printable(text)}" contains {_spelled(odd)}', hint="use - or . instead"
        )
    if text.startswith("-"):
        raise errors.InvalidInput(
            f'the {what} "{text}" starts with -, it would be taken for an option'
        )
    return text


def address(text: Any) -> str:
    """An IP address or a host name, without port, scheme or brackets."""
    if not isinstance(text, str) or not text:
        raise errors.InvalidInput("the address is empty", hint="give an IP address or a host name")
    if _is_ip(text):
        return text
    reason = _why_not_a_host(text)
    if reason:
        raise errors.InvalidInput(
            f'"{text}" is not an IP address or host name',
            cause=reason,
            hint="for example 192.0.2.1 or sw1.example.net",
        )
    return text.rstrip(".")


def requires(pairs: Mapping[str, Any] | Iterable[str]) -> dict[str, str]:
    """Tags a worker must carry, from a mapping or from `key=value` words."""
    items = pairs.items() if isinstance(pairs, Mapping) else [_split(pair) for pair in pairs]
    found: dict[str, str] = {}
    for key, value in items:
        if odd := why_not_a_tag(key, value):
            shown = printable(f"{key}={value}")
            raise errors.InvalidInput(
                f'the requirement "{shown}" is not of the form key=value',
                cause=odd,
                hint="for example site=ams",
            )
        if found.setdefault(key, value) != value:
            raise errors.InvalidInput(
                f'the requirement "{key}" is given twice: {found[key]} and {value}'
            )
    return found


def tags(words: Iterable[Any]) -> tuple[str, ...]:
    """Words for people and filters; sorted, each once."""
    for word in words:
        if odd := why_not_a_word(word):
            raise errors.InvalidInput(
                f'the tag "{printable(str(word))}" is not one word', cause=odd
            )
    return tuple(sorted(set(words)))


def why_not_a_tag(key: Any, value: Any) -> str:
    """Empty if both may stand in `key=value`; else which of them may not, and why."""
    for what, part in (("key", key), ("value", value)):
        if odd := why_not_a_word(part):
            return f"the {what} {odd}"
    return ""


def why_not_a_word(text: Any) -> str:
    """Empty for a word that may stand in the name of a queue; else what is odd about it."""
    if not isinstance(text, str):
        return f"is {printable(repr(text))}, not text: put it in quotes"
    if not text:
        return "is empty"
    if len(text) > LONGEST_WORD:
        return f"has {len(text)} characters, at most {LONGEST_WORD} are allowed"
    odd = next((c for c in text if not _WORD.fullmatch(c)), None)
    return f"contains {_spelled(odd)}: letters, digits and _ . : @ + - only" if odd else ""


def _split(pair: str) -> tuple[str, str]:
    key, equals, value = pair.partition("=")
    if not equals:
        raise errors.InvalidInput(
            f'"{printable(pair)}" is not of the form key=value', hint="for example site=ams"
        )
    return key, value


def printable(text: str) -> str:
    """For a message: what would act on a terminal is spelled out."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _why_not_a_host(text: str) -> str:
    if "://" in text:
        return "it has a scheme; give the host only"
    if text.startswith("[") or (text.count(":") == 1 and text.rpartition(":")[2].isdigit()):
        return "it has a port or brackets; the port is an option of the collector"
    labels = text.rstrip(".").split(".")
    if len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        return "host names have letters, digits and hyphens between dots"
    if labels[-1].isdigit():
        return "it looks like an IPv4 address, but is none"
    return ""


def _spelled(character: str) -> str:
    if character.isspace():
        return "a blank"
    return f'"{character}"' if character.isprintable() else "an unprintable character"
