"""What may leave this installation? Removes secrets from a report, however deep they are in it.

By the name of a field, by what is known to be a secret, and by form: whatever logs in to a URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

MASK = "********"
#: Deeper than any report of ours; a structure that goes on is cut off, not followed.
DEEPEST = 40

_TELLING = re.compile(
    r"(?i)pass(word|wd|phrase)?s?$|secret|token|communit(y|ies)|credential|authori[sz]ation|cookie|envelope|dsn$"
    r"|(api|auth|priv|private|access|master|session|signing|encryption)_?keys?$|^keys?$"
)
_LOGIN_IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@")
_ASSIGNED = re.compile(
    r"(?i)(?P<name>\b\w*(?:passwd|password|passphrase|secret|token|community|api_?key|auth_?key|priv_?key)\w*['\"]?"
    r"\s*[=:]\s*)(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;&)\]}]+)"
)


def scrubbed(value: Any, known: Callable[[str], str], depth: int = 0) -> Any:
    """The same without secrets; `known` masks those of this process in a text."""
    if isinstance(value, str):
        return text(value, known)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= DEEPEST:
        return MASK
    if isinstance(value, Mapping):
        return {
            text(str(key), known): MASK
            if _TELLING.search(str(key))
            else scrubbed(item, known, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [scrubbed(item, known, depth + 1) for item in value]
    return text(repr(value), known)


def text(value: str, known: Callable[[str], str]) -> str:
    """Known secrets, `name=value` pairs with telling names, and the login part of every URL are masked."""
    masked = known(value)
    masked = _LOGIN_IN_URL.sub(rf"\g<scheme>{MASK}@", masked)
    return _ASSIGNED.sub(rf"\g<name>{MASK}", masked)
