"""Secret settings: the parts that must never be printed, and the form that may be shown."""

from __future__ import annotations

import re

#: The URL of a Sentry project. Its login part is a key and must not be printed.
DSN = re.compile(r"https?://[^/\s:@]+(:[^/\s:@]*)?@[^/\s@]+(/[^\s?#]*)?/\d+")

#: Settings whose URL is a secret beyond its host.
SECRET_PATHS = frozenset({"heartbeat_url"})

_MASK = "********"
_PART = re.compile("[:,]")


def secret_parts(text: str, setting: str = "") -> list[str]:
    """The texts to redact everywhere: a URL's password, a DSN's keys, or the parts of a login."""
    _, separator, rest = text.partition("://")
    if setting in SECRET_PATHS:
        path = rest.partition("/")[2]
        return [path] if path else []
    if DSN.fullmatch(text):
        return rest.partition("@")[0].split(":")

    if separator:
        login = rest.rpartition("@")[0]
        parts = _PART.split(login)[1:]  # the user name is no secret
    else:
        parts = _PART.split(text)
    return [part for part in parts if part]


def masked(secret: str, setting: str = "") -> str:
    """A URL without its password, a DSN without its keys; any other secret as asterisks."""
    scheme, separator, rest = secret.partition("://")
    if setting in SECRET_PATHS and separator:
        return f"{scheme}://{rest.partition('/')[0]}/{_MASK}"
    if not separator:
        return _MASK if secret else ""

    login, at, host = rest.rpartition("@")
    if DSN.fullmatch(secret):
        return f"{scheme}://{_MASK}@{host}"
    if not at:
        return secret
    user = login.partition(":")[0]
    return f"{scheme}://{user}:{_MASK}@{host}"
