"""Masking of documents: fields with secret names, passwords and parameters in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "********"

_PASSWORD_IN_URL = re.compile(
    r"(?P<head>[A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@]*:)(?P<password>[^\s/?#]*)(?=@)"
)
_PARAMETER = re.compile(
    r"(?i)(?P<head>[?&;][\w.-]*(?:pass(?:word|wd|phrase)?|pwd|secret|token|community|signature"
    r"|(?:api|access|auth)[_-]?key)=)[^&;#\s]*"
)
_SECRET_NAME = re.compile(
    r"(?i)pass(word|wd|phrase)?$|secret|token$|community|api_?key|authori[sz]ation|envelope|cookie"
)
#: API tokens and sessions (token_values.py): nobody has to remember them to mask them.
TOKEN_VALUE = re.compile(r"poller_[A-Za-z0-9_-]{43}")
#: The query of an address or a path, which may hold a token under any name.
_QUERY = re.compile(r"(?P<head>(?:^/|://)[^\s?]*\?)\S+")


def mask(value: str) -> str:
    """Return asterisks for any text, whatever its length; "" for an empty one."""
    return MASK if value else ""


def is_secret_name(name: str) -> bool:
    """Return whether a field of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


def redact_url(url: str) -> str:
    """Return the URL without its password; user, host and path stay readable."""
    without_password = _PASSWORD_IN_URL.sub(rf"\g<head>{MASK}", url)
    return _PARAMETER.sub(rf"\g<head>{MASK}", without_password)


def masked(value: Any, *, whole_queries: bool = True) -> Any:
    """Return a value without secrets, at any depth: by name of the field, in URLs, in queries.

    Without `whole_queries` a query loses only the parameters whose names are those of secrets.
    """
    if isinstance(value, str):
        text = redact_url(value)
        if whole_queries:
            text = _QUERY.sub(rf"\g<head>{MASK}", text)
        return TOKEN_VALUE.sub(MASK, text)
    if isinstance(value, Mapping):
        return {key: _field(str(key), item, whole_queries) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [masked(item, whole_queries=whole_queries) for item in value]
    return value


def _field(name: str, value: Any, whole_queries: bool) -> Any:
    if is_secret_name(name) and value is not None and not isinstance(value, bool):
        return mask(str(value))
    return masked(value, whole_queries=whole_queries)
