"""Redaction of printed text: passwords in URLs, fields with secret names, known secrets."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from poller import poll_secrets
from poller.domain.access import masked_fields
from poller.domain.access.masked_fields import MASK as MASK
from poller.domain.access.masked_fields import mask as mask
from poller.domain.access.masked_fields import redact_url as redact_url

#: Shorter secrets are masked only while their own poll runs (poll_secrets.py): masking every "a"
#: would hide the whole log.
SHORTEST = 6


class Redactor:
    """Remembers the secrets of this process and removes them from texts. Thread-safe.

    There may be one password per device, so neither `remember` nor `text` slows down with their
    number.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: set[str] = set()
        #: The first SHORTEST characters of a secret -> lengths of such secrets, longest first.
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._lock = threading.Lock()
        for secret in secrets:
            self.remember(secret)

    def remember(self, secret: str) -> None:
        """Mask this text in everything redacted from now on."""
        if len(secret) < SHORTEST or secret in self._secrets:
            return

        beginning = secret[:SHORTEST]
        with self._lock:
            self._secrets.add(secret)
            lengths = {len(secret), *self._lengths.get(beginning, ())}
            self._lengths[beginning] = tuple(sorted(lengths, reverse=True))

    def text(self, text: str) -> str:
        """A text without remembered secrets, those of the poll at hand, and passwords in URLs."""
        text = poll_secrets.mask_at_hand(self._masked(text), MASK)
        if "poller_" in text:
            text = masked_fields.TOKEN_VALUE.sub(MASK, text)
        return redact_url(text) if "://" in text else text

    def _masked(self, text: str) -> str:
        """Replace secrets from left to right, at each position the longest that starts there."""
        beginnings = self._lengths
        last_start = len(text) - SHORTEST + 1
        starts = [at for at in range(last_start) if text[at : at + SHORTEST] in beginnings]

        pieces: list[str] = []
        end = 0
        for start in starts:
            length = self._length_at(start, text) if start >= end else 0
            if length:
                pieces.append(text[end:start])
                pieces.append(MASK)
                end = start + length
        pieces.append(text[end:])
        return "".join(pieces)

    def _length_at(self, start: int, text: str) -> int:
        """The length of the longest secret that starts here, or 0."""
        for length in self._lengths[text[start : start + SHORTEST]]:
            if text[start : start + length] in self._secrets:
                return length
        return 0

    def fields(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """A log record with fields of secret names masked and all texts redacted, at any depth."""
        redacted = {}
        for name, value in record.items():
            if masked_fields.is_secret_name(str(name)):
                redacted[name] = mask(str(value))
            else:
                redacted[name] = self.value(value)
        return redacted

    def value(self, value: Any) -> Any:
        """A text, mapping, list or tuple without secrets; any other value as it is."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.fields(value)
        if type(value) is list:
            return [self.value(item) for item in value]
        if type(value) is tuple:
            return tuple(self.value(item) for item in value)
        return value

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"
