"""The replies of a broken device: noise, the banner of another service, a damaged reply."""

from __future__ import annotations

import random
from collections.abc import Callable

_BANNER = b"SSH-2.0-dropbear\r\n"


def garble(reply: bytes, dice: random.Random) -> bytes:
    """Return bytes that are not the protocol, and never the reply itself."""
    return dice.choice(_GARBLERS)(reply, dice)


def _noise(reply: bytes, dice: random.Random) -> bytes:
    return dice.randbytes(dice.randint(1, 200))


def _banner(reply: bytes, dice: random.Random) -> bytes:
    return _BANNER


def _cut_short(reply: bytes, dice: random.Random) -> bytes:
    return reply[: dice.randint(1, max(1, len(reply) - 1))]


def _bent(reply: bytes, dice: random.Random) -> bytes:
    """Invert every octet."""
    return bytes(octet ^ 0xFF for octet in reply)


def _endless(reply: bytes, dice: random.Random) -> bytes:
    """Announce a length of four gigabytes."""
    return reply[:1] + b"\x84\xff\xff\xff\xff" + reply[2:]


_GARBLERS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _noise,
    _banner,
    _cut_short,
    _bent,
    _endless,
)
