"""Removal of secrets from a report before it leaves this installation, at any depth.

A secret is recognised by the name of its field, by a list of known secrets, or by its form (a login
in a URL, `name=value` with a secret name).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

MASK = "********"
#: Deeper than any report of ours; a deeper structure is cut off.
DEEPEST = 40

_SECRET_NAME = re.compile(
    r"(?i)pass(word|wd|phrase)?s?$|secret|token|communit(y|ies)|credential|authori[sz]ation|cookie"
    r"|envelope|dsn$"
    r"|(api|auth|priv|private|access|master|session|signing|encryption)_?keys?$|^keys?$"
)
_LOGIN_IN_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#]*@")
_ASSIGNED = re.compile(
    r"(?i)(?P<name>\b\w*"
    r"(?:passwd|password|passphrase|secret|token|community|api_?key|auth_?key|priv_?key)\w*['\"]?"
    r"\s*[=:]\s*)(?P<value>'[^']*'|\"[^\"]*\"|[^\s,;&)\]}]+)"
)

#: Masks the secrets of this process in a text.
Redact = Callable[[str], str]


def scrubbed(value: Any, redact: Redact, depth: int = 0) -> Any:
    """A copy of a JSON-like value without secrets; other objects become their scrubbed repr."""
    if isinstance(value, str):
        return text(value, redact)
    if value is None or isinstance(value, bool | int | float):
        return value
    if depth >= DEEPEST:
        return MASK
    if isinstance(value, Mapping):
        return _scrubbed_fields(value, redact, depth)
    if isinstance(value, list | tuple | set | frozenset):
        return [scrubbed(item, redact, depth + 1) for item in value]
    return text(repr(value), redact)


def _scrubbed_fields(fields: Mapping[Any, Any], redact: Redact, depth: int) -> dict[str, Any]:
    safe = {}
    for key, value in fields.items():
        name = str(key)
        if _SECRET_NAME.search(name):
            safe_value = MASK
        else:
            safe_value = scrubbed(value, redact, depth + 1)
        safe[text(name, redact)] = safe_value
    return safe


def text(value: str, redact: Redact) -> str:
    """A text without known secrets, logins in URLs, and values assigned to secret names."""
    masked = redact(value)
    masked = _LOGIN_IN_URL.sub(rf"\g<scheme>{MASK}@", masked)
    return _ASSIGNED.sub(rf"\g<name>{MASK}", masked)
