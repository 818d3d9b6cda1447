"""What of a secret setting may be shown, and what of it never."""

from __future__ import annotations

import re

#: The key of a DSN is all there is to it: it must not be printed either.
DSN = re.compile(r"https?://[^/\s:@]+(:[^/\s:@]*)?@[^/\s@]+(/[^\s?#]*)?/\d+")


def secret_parts(text: str) -> list[str]:
    """What of a secret setting must never be printed: a URL's password, a login's, a DSN's key, or the whole."""
    if DSN.fullmatch(text):
        return text.partition("://")[2].partition("@")[0].split(":")
    login = text.partition("://")[2].rpartition("@")[0] if "://" in text else text
    return [part for part in re.split("[:,]", login)[1 if "://" in text else 0 :] if part]


def masked(secret: str) -> str:
    """A URL keeps all but its password, a DSN its host; any other secret shows only that it is set."""
    scheme, separator, rest = secret.partition("://")
    if not separator:
        return "********" if secret else ""
    login, at, host = rest.rpartition("@")
    if DSN.fullmatch(secret):
        return f"{scheme}://********@{host}"
    user = login.partition(":")[0]
    return f"{scheme}://{user}:********@{host}" if at else secret
