"""RFC 2579 DISPLAY-HINT for octets: `1x:` is a MAC address, `1d.1d.1d.1d` an IPv4 address, `255a` a text.

As snmp_exporter reads it: the last part of a hint repeats, no separator at the end, and a hint that makes no sense
(or has nothing to show) is no hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_DIGITS = b"0123456789"
_FORMATS = b"dxoat"
#: Numbers of more octets are not shown as numbers.
_LONGEST_NUMBER = 8


class BadHint(ValueError):
    """It is not a display hint, or does not fit the octets."""


@dataclass(frozen=True, slots=True)
class Part:
    """One specification of a hint, such as `*1d./`."""

    take: int
    format: str
    repeats: bool = False
    separator: bytes = b""
    terminator: bytes = b""

    def show(self, octets: bytes) -> bytes:
        if self.format == "x":
            return octets.hex().upper().encode()
        if self.format in "at":
            return octets
        if len(octets) > _LONGEST_NUMBER:
            raise BadHint
        return format(int.from_bytes(octets, "big"), self.format).encode()


def apply(hint: str, octets: bytes) -> bytes | None:
    """The octets as the hint shows them; None when they are to be shown without it."""
    if not hint or not octets:
        return None
    try:
        return b"".join(_shown(_parts(hint), octets))
    except BadHint:
        return None


def _shown(parts: tuple[Part | None, ...], octets: bytes) -> Iterator[bytes]:
    at = number = 0
    while at < len(octets):
        part = parts[min(number, len(parts) - 1)]
        if part is None or (number >= len(parts) and not (part.take or part.repeats)):
            raise BadHint  # nonsense from here on, or a last part that would repeat for ever
        number += 1
        count = 1
        if part.repeats:
            count, at = octets[at], at + 1
        for turn in range(count):
            if at >= len(octets):
                break
            yield part.show(octets[at : at + part.take])
            at = min(at + part.take, len(octets))
            if at < len(octets) and not (part.terminator and turn == count - 1):
                yield part.separator
        if at < len(octets):
            yield part.terminator


@lru_cache(maxsize=1024)
def _parts(hint: str) -> tuple[Part | None, ...]:
    """None stands for the nonsense a hint ends in: it matters only to octets that get that far."""
    parts: list[Part | None] = []
    rest = hint.encode()
    while rest:
        try:
            part, rest = _part(rest)
        except BadHint:
            parts.append(None)
            break
        parts.append(part)
    return tuple(parts)


def _part(rest: bytes) -> tuple[Part, bytes]:
    repeats = rest[:1] == b"*"
    rest = rest[1:] if repeats else rest
    digits = rest[: len(rest) - len(rest.lstrip(_DIGITS))]
    rest = rest[len(digits) :]
    if not digits or len(digits) > 18 or not rest or rest[0] not in _FORMATS:
        raise BadHint
    kind, rest = chr(rest[0]), rest[1:]
    separator, rest = _literal(rest)
    terminator = b""
    if repeats:
        terminator, rest = _literal(rest)
    return Part(int(digits), kind, repeats, separator, terminator), rest


def _literal(rest: bytes) -> tuple[bytes, bytes]:
    """One octet that begins no part, if there is one."""
    if not rest or rest[:1] in b"*" + _DIGITS:
        return b"", rest
    return rest[:1], rest[1:]
