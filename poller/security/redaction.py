"""What may be printed? Masks secrets in URLs, in fields with telling names, and where a text quotes one."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

MASK = "********"
#: Shorter texts are too common to be searched for: masking every "a" would hide the whole log.
SHORTEST = 6

_PASSWORD_IN_URL = re.compile(r"(?P<head>[A-Za-z][A-Za-z0-9+.-]*://[^\s:/?#@]*:)(?P<password>[^\s/?#]*)(?=@)")
_PARAMETER = re.compile(r"(?i)(?P<head>[?&](?:password|passwd|secret|token|api_?key|community|sslpassword)=)[^&#\s]*")
_TELLING = re.compile(r"(?i)pass(word|wd|phrase)?$|secret|token$|community|api_?key|authori[sz]ation|envelope")


def mask(value: str) -> str:
    """That something is set, and nothing else: not even its length."""
    return MASK if value else ""


def redact_url(url: str) -> str:
    """The URL without its password; user, host and path stay readable."""
    return _PARAMETER.sub(rf"\g<head>{MASK}", _PASSWORD_IN_URL.sub(rf"\g<head>{MASK}", url))


class Redactor:
    """Remembers secrets of this process and removes them from texts. Safe for threads."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self._lock = threading.Lock()
        for secret in secrets:
            self.remember(secret)

    def remember(self, secret: str) -> None:
        """From now on this text is masked wherever it shows up."""
        with self._lock:
            if len(secret) < SHORTEST or secret in self._secrets:
                return
            self._secrets.add(secret)
            longest_first = sorted(self._secrets, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        """A text without remembered secrets and without passwords in URLs."""
        if self._pattern:
            text = self._pattern.sub(MASK, text)
        return redact_url(text) if "://" in text else text

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
