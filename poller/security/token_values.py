"""The values of API tokens and sessions: 256 random bits, of which only a hash is stored.

The random bits cannot be guessed, so a plain hash is enough, and a lookup costs microseconds. The
prefix lets scanners of secrets and our redactor recognise a value.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

PREFIX = "poller_"
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")


def new() -> str:
    """Return a new random value."""
    return PREFIX + secrets.token_urlsafe(32)


def is_value(text: str) -> bool:
    """Whether a text has the form of a value; any other text is not looked up."""
    return _FORM.fullmatch(text) is not None


def digest(value: str) -> str:
    """Return the hash that is stored, as 64 hexadecimal digits."""
    return hashlib.sha256(value.encode()).hexdigest()


def form_token(session_value: str) -> str:
    """Return the token that proves that a form or script was served to this session.

    It follows from the session's value, which only the browser has, so nothing is stored.
    """
    return hmac.new(session_value.encode(), b"form token", hashlib.sha256).hexdigest()


def is_form_token(session_value: str, token: str) -> bool:
    """Whether a token belongs to this session, in constant time."""
    return hmac.compare_digest(form_token(session_value).encode(), token.encode())
