"""Parsers of RouterOS property texts. A parser returns None for a text that it cannot read.

Only properties declared as numbers are parsed; names and comments stay text.
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
_QUANTITY = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?) ?(?:[A-Za-z%]*(?:@.*)?)(?<!iB)")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT])iB")
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_RATE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([GMk]?)(?:bps|bit/s)(?:[-/@ ].*)?", re.IGNORECASE)
_DECIMAL_UNITS = {"g": 1e9, "m": 1e6, "k": 1e3, "": 1.0}
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}
_DATES = ("%Y-%m-%d %H:%M:%S", "%b/%d/%Y %H:%M:%S", "%Y-%m-%d", "%b/%d/%Y")
#: Longer texts are no numbers; int() and float() of a long text are slow.
_MAX_LENGTH = 64


def number(text: str) -> float | None:
    """Parse a plain number; None for any other text, such as the empty one or `4GiB`."""
    if len(text) > _MAX_LENGTH:
        return None
    if text.isdecimal() and text.isascii():  # the usual case
        return int(text)
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else None


def truth(text: str) -> float | None:
    """Parse `true` and `yes` as 1, `false` and `no` as 0."""
    return _TRUTH.get(text)


def quantity(text: str) -> float | None:
    """Parse a number with or without a unit: `24.1V`, `-52dBm`, `-52@6Mbps`, `3 %`, `120m`."""
    if len(text) > _MAX_LENGTH:
        return None
    match = _QUANTITY.fullmatch(text)
    return number(match[1]) if match else None


def size(text: str) -> float | None:
    """Parse bytes: `2048`, `2560KiB`, `1.5MiB`."""
    if len(text) > _MAX_LENGTH:
        return None
    match = _SIZE.fullmatch(text)
    return float(match[1]) * _BINARY[match[2]] if match else number(text)


def kibibytes(text: str) -> float | None:
    """Parse a size into bytes; a number without a unit counts KiB."""
    plain = number(text)
    return size(text) if plain is None else plain * _BINARY["K"]


def seconds(text: str) -> float | None:
    """Parse a duration: `1w2d3h4m5s`, `4d05:06:07` or `05:06:07.250`."""
    if len(text) > _MAX_LENGTH:
        return None
    total_s = 0.0
    at = 0
    for piece in _PIECE.finditer(text):
        if piece.start() != at:
            break
        total_s += int(piece[1]) * _UNITS_S[piece[2]]
        at = piece.end()

    clock = _CLOCK.fullmatch(text, at)
    if clock is not None:
        hours, minutes, whole, fraction = clock.groups()
        total_s += int(hours) * 3600 + int(minutes) * 60
        return total_s + float(f"{whole}.{fraction or 0}")
    return total_s if at == len(text) and at > 0 else None


def milliseconds(text: str) -> float | None:
    length_s = seconds(text)
    return None if length_s is None else round(length_s * 1000, 6)


def bits(text: str) -> float | None:
    """Parse a rate into bit/s: `1Gbps`, `130Mbps-20MHz/2S/SGI`; a plain number is bit/s."""
    if len(text) > _MAX_LENGTH:
        return None
    match = _RATE.fullmatch(text)
    return float(match[1]) * _DECIMAL_UNITS[match[2].lower()] if match else number(text)


def megabits(text: str) -> float | None:
    """Parse a rate into Mbit/s; a plain number is bit/s."""
    rate = bits(text)
    return None if rate is None else rate / 1e6


def instant(text: str) -> float | None:
    """Parse a UTC date of RouterOS 7 (`2026-01-31 23:59:59`) or 6 (`jan/31/2026 23:59:59`).

    The result is in seconds since 1970.
    """
    if len(text) > _MAX_LENGTH:
        return None
    for form in _DATES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return None


def total(text: str) -> float | None:
    """Add up numbers separated by commas: a switch counts each lane of its CPU port."""
    if "," not in text:
        return number(text)
    sum_: float = 0
    for item in text.split(","):
        value = number(item)
        if value is None:
            return None
        sum_ += value
    return sum_


def times(factor: float, parse: Parse = number) -> Parse:
    """Make a parser that multiplies the result of another one."""

    def scaled(text: str) -> float | None:
        value = parse(text)
        return None if value is None else value * factor

    return scaled


def part(at: int, separator: str, parse: Parse = number) -> Parse:
    """Make a parser of one of several values in a text, such as `upload/download`."""

    def picked(text: str) -> float | None:
        parts = text.split(separator)
        return parse(parts[at]) if at < len(parts) else None

    return picked


def is_(*words: str) -> Parse:
    """Make a parser that returns 1 for these words and 0 for any other text."""

    def matches(text: str) -> float | None:
        return 1 if text in words else 0

    return matches


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
