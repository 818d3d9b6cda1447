"""Masking of the secrets of the poll at hand, at any length, in everything that poll says.

A process masks only longer secrets everywhere: to mask "abc" in every line would garble the log.
While a poll runs, its own credential is known, so a short secret is masked as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Protocol

#: A shorter secret may be a part of any word. The whole word is masked, because the rest of the
#: word would reveal the part that is missing.
SHORT = 6


class HoldsSecrets(Protocol):
    """A credential."""

    def secrets(self) -> list[str]: ...


_at_hand: ContextVar[HoldsSecrets | None] = ContextVar("credential_at_hand", default=None)


def use(credential: HoldsSecrets | None) -> None:
    """Mask the secrets of this credential in all that the current task or thread says next."""
    _at_hand.set(credential)


def mask_at_hand(text: str, asterisks: str) -> str:
    """A text without the secrets of the poll that the current task or thread runs."""
    credential = _at_hand.get()
    return mask(text, credential.secrets(), asterisks) if credential else text


def mask(text: str, secrets: Iterable[str], asterisks: str) -> str:
    """A text without these secrets; of a short one, without the words that contain it."""
    for secret in sorted(secrets, key=len, reverse=True):
        if not secret or secret not in text:
            continue
        if len(secret) < SHORT:
            text = _without_words(text, secret, asterisks)
        else:
            text = text.replace(secret, asterisks)
    return text


def _without_words(text: str, part: str, asterisks: str) -> str:
    """A text without the words around each occurrence of a part, in one pass over the text."""
    pieces: list[str] = []
    done = 0
    found = text.find(part)
    while found >= 0:
        start, end = found, found + len(part)
        while start > done and _is_of_word(text[start - 1]):
            start -= 1
        while end < len(text) and _is_of_word(text[end]):
            end += 1
        pieces += (text[done:start], asterisks)
        done = end
        found = text.find(part, done)
    return "".join((*pieces, text[done:]))


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
