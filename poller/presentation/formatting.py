"""Numbers and instants as people read them: three significant digits, one unit, `–` for a value
that was not measured.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

NOT_MEASURED = "–"
#: Control characters except line ends and tabs, and those that turn the direction of writing.
_ACTING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
#: The end of the year 9999: a later instant cannot be written.
_LAST_SECOND = 253_402_300_799
_SI = ("", "k", "M", "G", "T")
_IEC = ("B", "KiB", "MiB", "GiB", "TiB")


def visible(text: str) -> str:
    """A text of a device whose control characters are shown as `\\u001b` and act on nothing.

    In JSON the result has the same meaning as the text.
    """
    return _ACTING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def exact(number: int) -> str:
    """All digits: `98,204`."""
    return f"{number:,}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 device`, `2,000 devices`. `plural` is for nouns whose plural does not end in s."""
    if number != 1:
        noun = plural or f"{noun}s"
    return f"{exact(number)} {noun}"


def count(number: int) -> str:
    """All digits up to 9,999, then `12.3 k`."""
    if abs(number) < 10_000:
        return exact(number)
    return _scaled(number, 1000, _SI)


def rate(per_second: float) -> str:
    """`1.64 k/s`, `12.3 /s`."""
    if per_second < 1000:
        return f"{significant(per_second)} /s"
    return f"{_scaled(per_second, 1000, _SI)}/s"


def bits(per_second: float) -> str:
    """`1.24 Gbit/s`, from bits per second."""
    text = _scaled(per_second, 1000, _SI)
    has_prefix = " " in text
    return f"{text}bit/s" if has_prefix else f"{text} bit/s"


def size(number: int) -> str:
    """Memory in powers of 1024: `183 MiB`."""
    return _scaled(number, 1024, _IEC)


def share(part: int, whole: int) -> str:
    """`99.95 %`. Only the whole is 100 % and only nothing is 0 %; `–` when the whole is 0."""
    if whole <= 0:
        return NOT_MEASURED
    if part == 0:
        return "0 %"
    if part == whole:
        return "100 %"
    percent = 100 * part / whole
    shown = min(99.99, max(0.01, percent))
    return f"{shown:.2f} %"


def duration(ms: float) -> str:
    """`850 ms`, `1.24 s`, `3 m 20 s`, `4 h 10 m`, `12 d 3 h`."""
    if ms < 999.5:
        return f"{significant(ms)} ms"
    if ms < 59_950:
        return f"{significant(ms / 1000)} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} m {seconds} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} m"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def age(ms: int) -> str:
    """A duration in whole seconds: `4 s`, `3 m 20 s`."""
    seconds = max(0, ms) // 1000
    if seconds < 60:
        return f"{seconds} s"
    return duration(seconds * 1000)


def instant(ms: int) -> str:
    """RFC 3339 in UTC, to the second, for `<time datetime>` and the API."""
    at = datetime.fromtimestamp(min(ms // 1000, _LAST_SECOND), UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def utc(ms: int) -> datetime:
    """An instant in UTC, for JSON."""
    return datetime.fromtimestamp(ms / 1000, UTC)


def moment(ms: int) -> datetime | None:
    """An instant in UTC, for JSON; None for 0, which stands for "never"."""
    return utc(ms) if ms else None


def significant(number: float) -> str:
    """Three significant digits without an exponent: `1240`, `124`, `12.4`, `1.24`, `0.12`."""
    if number == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(number)))
    decimals = max(0, min(2, 2 - magnitude))
    text = f"{number:.{decimals}f}"
    if "." not in text:
        return text
    return text.rstrip("0").rstrip(".")


def _scaled(number: float, step: int, units: tuple[str, ...]) -> str:
    power = 0
    while abs(number) >= step * 0.9995 and power < len(units) - 1:
        number /= step
        power += 1
    return f"{significant(number)} {units[power]}".rstrip()
