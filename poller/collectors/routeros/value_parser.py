"""RouterOS property texts as numbers. Only properties declared numeric get here: names and comments stay text.

Every parser takes any text and gives None for what it cannot read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

Parse = Callable[[str], float | None]

_UNITS_S = {
    "w": 604_800.0,
    "d": 86_400.0,
    "h": 3_600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 0.001,
    "us": 0.000_001,
}
_PIECE = re.compile(r"([0-9]+)(ms|us|w|d|h|m|s)")
_CLOCK = re.compile(r"([0-9]+):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_INTEGER = re.compile(r"-?[0-9]+")
_LEADING = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?(?:[A-Za-z%]*(?:@.*)?)(?<!iB)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])iB")
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([GMk]?)(?:bps|bit/s)(?:[-/@ ].*)?", re.IGNORECASE)
_TIMES = {"g": 1e9, "m": 1e6, "k": 1e3, "": 1.0}
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}
_DATES = ("%Y-%m-%d %H:%M:%S", "%b/%d/%Y %H:%M:%S", "%Y-%m-%d", "%b/%d/%Y")
#: Longer texts are no numbers, and int() and float() of a long one take their time.
_LONGEST = 64


def number(text: str) -> float | None:
    """A plain number; None for anything else, such as the empty text or `4GiB`."""
    if len(text) > _LONGEST:
        return None
    if text.isdecimal() and text.isascii():  # nearly always
        return int(text)
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else None


def truth(text: str) -> float | None:
    return _TRUTH.get(text)


def quantity(text: str) -> float | None:
    """A number and what it is measured in: `24.1V`, `-52dBm`, `-52@6Mbps`, `3 %`, `120m`; or the bare number."""
    found = _LEADING.fullmatch(text) if len(text) <= _LONGEST else None
    return number(found[1]) if found else None


def size(text: str) -> float | None:
    """Bytes: `2048`, `2560KiB`, `1.5MiB`."""
    found = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    return float(found[1]) * _BINARY[found[2]] if found else number(text)


def kibibytes(text: str) -> float | None:
    """Bytes of a size that is in KiB where it does not say otherwise."""
    value = size(text)
    return value if value is None or number(text) is None else value * _BINARY["K"]


def seconds(text: str) -> float | None:
    """`1w2d3h4m5s`, `4d05:06:07` or `05:06:07.250`; None when it is no duration."""
    if len(text) > _LONGEST:
        return None
    total = 0.0
    at = 0
    for piece in _PIECE.finditer(text):
        if piece.start() != at:
            break
        total += int(piece[1]) * _UNITS_S[piece[2]]
        at = piece.end()
    clock = _CLOCK.fullmatch(text, at)
    if clock is not None:
        hours, minutes, whole, fraction = clock.groups()
        return total + int(hours) * 3600 + int(minutes) * 60 + float(f"{whole}.{fraction or 0}")
    return total if at == len(text) and at > 0 else None


def milliseconds(text: str) -> float | None:
    length = seconds(text)
    return None if length is None else round(length * 1000, 6)


def bits(text: str) -> float | None:
    """A rate in bit/s: `1Gbps`, `2.5Gbps`, `130Mbps-20MHz/2S/SGI`; a bare number is bit/s already."""
    if len(text) > _LONGEST:
        return None
    found = _RATE.fullmatch(text)
    return float(found[1]) * _TIMES[found[2].lower()] if found else number(text)


def megabits(text: str) -> float | None:
    """A rate in Mbit/s; a bare number means bit/s."""
    rate = bits(text)
    return None if rate is None else rate / 1e6


def instant(text: str) -> float | None:
    """A date of RouterOS 7 (`2026-01-31 23:59:59`) or 6 (`jan/31/2026 23:59:59`) in UTC seconds since 1970."""
    for form in _DATES if len(text) <= _LONGEST else ():
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


def total(text: str) -> float | None:
    """The sum of numbers with commas between them: a switch counts each lane of its CPU port."""
    if "," not in text:
        return number(text)
    parts = [number(part) for part in text.split(",")]
    return sum(part for part in parts if part is not None) if None not in parts else None


def times(factor: float, parse: Parse = number) -> Parse:
    """The same in another unit."""

    def scaled(text: str) -> float | None:
        value = parse(text)
        return None if value is None else value * factor

    return scaled


def part(at: int, separator: str, parse: Parse = number) -> Parse:
    """One of several values in a text, such as `upload/download`."""

    def picked(text: str) -> float | None:
        parts = text.split(separator)
        return parse(parts[at]) if at < len(parts) else None

    return picked


def is_(*words: str) -> Parse:
    """1 for these words, 0 for any other."""
    return lambda text: 1 if text in words else 0


__all__ = [
    "Parse",
    "bits",
    "instant",
    "is_",
    "kibibytes",
    "megabits",
    "milliseconds",
    "number",
    "part",
    "quantity",
    "seconds",
    "size",
    "times",
    "total",
    "truth",
]
