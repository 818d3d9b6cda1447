"""RFC 2579 DISPLAY-HINT for octets: `1x:` is a MAC address, `1d.1d.1d.1d` an IPv4 address.

Hints apply as in snmp_exporter: the last part repeats, no separator follows the last octet, and
octets that a hint does not fit are shown without the hint.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_DIGITS = b"0123456789"
_FORMATS = b"dxoat"
#: Octets of the largest number a hint can show.
_LONGEST_NUMBER = 8
_LONGEST_COUNT = 18


class BadHint(ValueError):
    """The text is not a display hint, or the hint does not fit the octets."""


@dataclass(frozen=True, slots=True)
class Part:
    """One specification of a hint, such as `*1d./`."""

    take: int
    format: str
    repeats: bool = False
    separator: bytes = b""
    terminator: bytes = b""

    def show(self, octets: bytes) -> bytes:
        """Return some octets in the format of the part.

        Raises BadHint.
        """
        if self.format == "x":
            return octets.hex().upper().encode()
        if self.format in "at":
            return octets
        if len(octets) > _LONGEST_NUMBER:
            raise BadHint

        number = int.from_bytes(octets, "big")
        return format(number, self.format).encode()


def apply(hint: str, octets: bytes) -> bytes | None:
    """Return the octets as the hint shows them; None when the hint does not apply."""
    if not hint or not octets:
        return None

    try:
        return b"".join(_shown(_parts(hint), octets))
    except BadHint:
        return None


def _shown(parts: tuple[Part | None, ...], octets: bytes) -> Iterator[bytes]:
    """Yield the shown octets, separators and terminators in order.

    Raises BadHint.
    """
    at = 0
    number = 0
    while at < len(octets):
        part = parts[min(number, len(parts) - 1)]
        if part is None:
            raise BadHint
        if number >= len(parts) and not (part.take or part.repeats):
            raise BadHint  # a last part that takes nothing would repeat without end
        number += 1

        count = 1
        if part.repeats:
            count = octets[at]
            at += 1
        for repetition in range(count):
            if at >= len(octets):
                break
            yield part.show(octets[at : at + part.take])
            at = min(at + part.take, len(octets))
            terminated = part.terminator and repetition == count - 1
            if at < len(octets) and not terminated:
                yield part.separator
        if at < len(octets):
            yield part.terminator


@lru_cache(maxsize=1024)
def _parts(hint: str) -> tuple[Part | None, ...]:
    """Parse a hint. A final None stands for an invalid rest, which matters to long octets only."""
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


def _part(text: bytes) -> tuple[Part, bytes]:
    """Parse one specification; return the part and the text after it."""
    repeats = text.startswith(b"*")
    text = text.removeprefix(b"*")

    rest = text.lstrip(_DIGITS)
    digits = text[: len(text) - len(rest)]
    if not 0 < len(digits) <= _LONGEST_COUNT or not rest or rest[0] not in _FORMATS:
        raise BadHint

    kind = chr(rest[0])

    separator, rest = _literal(rest[1:])
    terminator = b""
    if repeats:
        terminator, rest = _literal(rest)

    part = Part(
        take=int(digits), format=kind, repeats=repeats, separator=separator, terminator=terminator
    )
    return part, rest


def _literal(text: bytes) -> tuple[bytes, bytes]:
    """Split off one octet, unless it begins the next part."""
    if not text or text[:1] in b"*" + _DIGITS:
        return b"", text
    return text[:1], text[1:]
