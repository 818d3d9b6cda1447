"""Masking of the secrets of the poll at hand, at any length, in everything that poll says.

A process masks only longer secrets everywhere: to mask "abc" in every line would garble the log.
While a poll runs, its own credential is known, so a short secret is masked as well.
"""

from __future__ import annotations

import re
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
            text = re.sub(rf"\w*{re.escape(secret)}\w*", lambda _: asterisks, text)
        else:
            text = text.replace(secret, asterisks)
    return text
