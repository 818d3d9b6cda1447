"""Durations as operators write them: `90`, `60s`, `5m`, `1h30m`, `500ms`.

Whole milliseconds inside.
"""

from __future__ import annotations

import math
import re

from poller import errors

MIN_INTERVAL_MS = 1_000
MAX_INTERVAL_MS = 31 * 86_400_000
DEFAULT_INTERVAL_MS = 60_000
DEFAULT_TIMEOUT_MS = 10_000

UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
#: Other spellings of the units, for the hint only.
_SPELLINGS = {
    **{unit: unit for unit in UNITS_MS},
    "millis": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hr": "h",
    "hour": "h",
    "day": "d",
}
_LENIENT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+?)s?\.?", re.IGNORECASE)


def parse_ms(value: str | int | float) -> int:
    """Return a duration in milliseconds; a bare number is seconds.

    Raises InvalidInput with a hint.
    """
    if isinstance(value, bool):
        raise _not_a_duration(value)

    text = str(value).strip()
    if _NUMBER.fullmatch(text):
        text += "s"
    if not _WHOLE.fullmatch(text):
        raise _not_a_duration(value)

    parts = [float(number) * UNITS_MS[unit] for number, unit in _PART.findall(text)]
    length_ms = sum(parts)
    if math.isinf(length_ms):
        raise errors.InvalidInput(f'"{text[:20]}..." is not a duration', hint="it is too long")
    return round(length_ms)


def format_ms(duration_ms: int) -> str:
    """Return the shortest exact form: 90000 -> `1m30s`, 1500 -> `1s500ms`, 0 -> `0s`."""
    rest = duration_ms
    text = ""
    for unit in ("d", "h", "m", "s", "ms"):
        count, rest = divmod(rest, UNITS_MS[unit])
        if count:
            text += f"{count}{unit}"
    return text or "0s"


def rounded_text(duration_ms: int) -> str:
    """Return the rounded form for a sentence: `850 ms`, `8.3 s`, `3 m 20 s`, `4 h 10 m`."""
    if duration_ms < 1_000:
        return f"{duration_ms} ms"
    if duration_ms < 59_950:
        return f"{duration_ms / 1_000:.1f} s".replace(".0 ", " ")

    seconds = round(duration_ms / 1_000)
    if seconds < 3_600:
        return _two_units(seconds, "m", "s")
    if seconds < 86_370:
        return _two_units(seconds, "h", "m")
    return _two_units(seconds, "d", "h")


def _two_units(seconds: int, large: str, small: str) -> str:
    small_s = UNITS_MS[small] // 1_000
    small_per_large = UNITS_MS[large] // UNITS_MS[small]
    rounded = round(seconds / small_s)
    count, rest = divmod(rounded, small_per_large)
    if not rest:
        return f"{count} {large}"
    return f"{count} {large} {rest} {small}"


def interval_ms(value: str | int | float, what: str = "interval") -> int:
    """Return a poll interval in milliseconds. Raises InvalidInput when it is out of bounds."""
    parsed = parse_ms(value)
    if not MIN_INTERVAL_MS <= parsed <= MAX_INTERVAL_MS:
        shortest = format_ms(MIN_INTERVAL_MS)
        longest = format_ms(MAX_INTERVAL_MS)
        raise errors.InvalidInput(
            f"the {what} {format_ms(parsed)} is out of bounds",
            hint=f"choose {shortest} to {longest}",
        )
    return parsed


def timeout_ms(value: str | int | float) -> int:
    """Return a timeout in milliseconds. Raises InvalidInput when it is not longer than 0."""
    parsed = parse_ms(value)
    if parsed <= 0:
        raise errors.InvalidInput("the timeout must be longer than 0")
    return parsed


def default_timeout_ms(interval: int) -> int:
    """Return ten seconds, or half of a short interval."""
    return min(DEFAULT_TIMEOUT_MS, interval // 2)


def _not_a_duration(value: object) -> errors.InvalidInput:
    return errors.InvalidInput(f'"{value}" is not a duration', hint=_hint(str(value)))


def _hint(text: str) -> str:
    match = _LENIENT.fullmatch(text.strip())
    unit = _SPELLINGS.get(match[2].lower()) if match else None
    if not match or not unit:
        return "write 60s, 5m or 1h30m"
    own_form = f"write {match[1]}{unit}"
    if unit in ("s", "ms"):
        return own_form
    seconds = round(float(match[1]) * UNITS_MS[unit]) / 1_000
    return f"{own_form} or {seconds:g}s"
