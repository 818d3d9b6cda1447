"""RouterOS property texts as numbers. Only properties declared numeric get here: names and comments stay text."""

from __future__ import annotations

import re

_UNITS_S = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 0.000_001}
_PIECE = re.compile(r"([0-9]+)(ms|us|w|d|h|m|s)")
_CLOCK = re.compile(r"([0-9]+):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_INTEGER = re.compile(r"-?[0-9]+")
_TRUTH = {"true": 1, "yes": 1, "false": 0, "no": 0}


def number(text: str) -> float | None:
    """A plain number; None for anything else, such as the empty text or `4GiB`."""
    if text.isdecimal() and text.isascii():
        return int(text)
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else None


def truth(text: str) -> float | None:
    return _TRUTH.get(text)


def seconds(text: str) -> float | None:
    """`1w2d3h4m5s`, `4d05:06:07` or `05:06:07.250`; None when it is no duration."""
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
