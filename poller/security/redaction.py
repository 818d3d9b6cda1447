"""What may be printed? Masks secrets in URLs, in fields with telling names, and where a text quotes one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "********"
#: Shorter texts are too common to be searched for: masking every "a" would hide the whole log.
SHORTEST = 6

_PASSWORD_IN_URL = re.compile(
    r"(?P<head>[A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@]*:)(?P<password>[^\s/?#]*)(?=@)"
)
_PARAMETER = re.compile(
    r"(?i)(?P<head>[?&](?:password|passwd|secret|token|api_?key|community|sslpassword)=)[^&#\s]*"
)
_TELLING = re.compile(
    r"(?i)pass(word|wd|phrase)?$|secret|token$|community|api_?key|authori[sz]ation|envelope"
)


def mask(value: str) -> str:
    """That something is set, and nothing else: not even its length."""
    return MASK if value else ""


def redact_url(url: str) -> str:
    """The URL without its password; user, host and path stay readable."""
    return _PARAMETER.sub(rf"\g<head>{MASK}", _PASSWORD_IN_URL.sub(rf"\g<head>{MASK}", url))


class Redactor:
    """Remembers secrets of this process and removes them from texts. Safe for threads.

    There may be a password for each router: neither a new one nor a text may cost more because of the others.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._lengths: dict[
            str, tuple[int, ...]
        ] = {}  # of secrets that begin like this, the longest first
        self._lock = threading.Lock()
        for secret in secrets:
            self.remember(secret)

    def remember(self, secret: str) -> None:
        """From now on this text is masked wherever it shows up."""
        if len(secret) < SHORTEST or secret in self._secrets:
            return
        beginning = secret[:SHORTEST]
        with self._lock:
            self._secrets.add(secret)
            lengths = {len(secret), *self._lengths.get(beginning, ())}
            self._lengths[beginning] = tuple(sorted(lengths, reverse=True))

    def text(self, text: str) -> str:
        """A text without remembered secrets and without passwords in URLs."""
        text = self._masked(text)
        return redact_url(text) if "://" in text else text

    def _masked(self, text: str) -> str:
        """From left to right, at each place the longest secret that begins there."""
        beginnings = self._lengths
        places = [
            at for at in range(len(text) - SHORTEST + 1) if text[at : at + SHORTEST] in beginnings
        ]
        pieces: list[str] = []
        end = 0
        for at in places:
            length = self._length_at(at, text) if at >= end else 0
            if length:
                pieces += text[end:at], MASK
                end = at + length
        return "".join([*pieces, text[end:]])

    def _length_at(self, at: int, text: str) -> int:
        lengths = self._lengths[text[at : at + SHORTEST]]
        return next((length for length in lengths if text[at : at + length] in self._secrets), 0)

    def fields(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A log record: fields with telling names are masked whole, texts are searched, depth included."""
        return {
            name: mask(str(value)) if _TELLING.search(str(name)) else self.value(value)
            for name, value in record.items()
        }

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.fields(value)
        if isinstance(value, list | tuple):
            return type(value)(map(self.value, value)) if type(value) in (list, tuple) else value
        return value

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"
