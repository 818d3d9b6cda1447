"""What does a broken device send? Noise, a banner of another service, or a good reply cut short or bent."""

from __future__ import annotations

import random
from collections.abc import Callable

_BANNER = b"SSH-2.0-dropbear\r\n"


def garble(reply: bytes, dice: random.Random) -> bytes:
    """Bytes that are not the protocol, one way or another; never the reply itself."""
    return dice.choice(_WAYS)(reply, dice)


def _noise(reply: bytes, dice: random.Random) -> bytes:
    return dice.randbytes(dice.randint(1, 200))


def _banner(reply: bytes, dice: random.Random) -> bytes:
    return _BANNER


def _cut_short(reply: bytes, dice: random.Random) -> bytes:
    return reply[: dice.randint(1, max(1, len(reply) - 1))]


def _bent(reply: bytes, dice: random.Random) -> bytes:
    """Every octet inverted: right length, wrong everything."""
    return bytes(octet ^ 0xFF for octet in reply)


def _endless(reply: bytes, dice: random.Random) -> bytes:
    """A length that promises four gigabytes."""
    return reply[:1] + b"\x84\xff\xff\xff\xff" + reply[2:]


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _noise,
    _banner,
    _cut_short,
    _bent,
    _endless,
)
