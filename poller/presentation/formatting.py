"""Numbers as people read them: three significant digits, one unit, `–` for what was not measured."""

from __future__ import annotations

import math
from datetime import UTC, datetime

NOT_MEASURED = "–"
_SI = ("", "k", "M", "G", "T")
_IEC = ("B", "KiB", "MiB", "GiB", "TiB")


def exact(number: int) -> str:
    """`98,204`: for the few numbers a person compares digit by digit."""
    return f"{number:,}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 device`, `2,000 devices`; give the plural where it is not made with an s."""
    return f"{exact(number)} {noun if number == 1 else plural or noun + 's'}"


def count(number: int) -> str:
    """Exact to 9,999, then `12.3 k`."""
    return exact(number) if abs(number) < 10_000 else _scaled(number, 1000, _SI)


def rate(per_second: float) -> str:
    """`1.64 k/s`, `12.3 /s`."""
    if per_second < 1000:
        return f"{significant(per_second)} /s"
    return f"{_scaled(per_second, 1000, _SI)}/s"


def bits(per_second: float) -> str:
    """`1.24 Gbit/s`, from bits per second."""
    text = _scaled(per_second, 1000, _SI)
    return f"{text}bit/s" if " " in text else f"{text} bit/s"


def size(number: int) -> str:
    """Memory in powers of 1024: `183 MiB`."""
    return _scaled(number, 1024, _IEC)


def share(part: int, whole: int) -> str:
    """`99.95 %`, rounded towards the middle: only all is 100 % and only none is 0 %."""
    if whole <= 0:
        return NOT_MEASURED
    if part in (0, whole):
        return "0 %" if part == 0 else "100 %"
    return f"{min(99.99, max(0.01, 100 * part / whole)):.2f} %"


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
    return f"{hours} h {minutes} m" if hours < 24 else f"{hours // 24} d {hours % 24} h"


def age(ms: int) -> str:
    """A duration in whole seconds: nobody needs the milliseconds of `last seen`."""
    seconds = max(0, ms) // 1000
    return f"{seconds} s" if seconds < 60 else duration(seconds * 1000)


def instant(ms: int) -> str:
    """RFC 3339 in UTC, to the second: what `<time datetime>` and the API carry."""
    return datetime.fromtimestamp(ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def significant(number: float) -> str:
    """Three significant digits, never in scientific notation: `1240`, `124`, `12.4`, `1.24`, `0.12`."""
    if number == 0:
        return "0"
    decimals = max(0, min(2, 2 - math.floor(math.log10(abs(number)))))
    text = f"{number:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(number: float, step: int, units: tuple[str, ...]) -> str:
    power = 0
    while abs(number) >= step * 0.9995 and power < len(units) - 1:
        number /= step
        power += 1
    return f"{significant(number)} {units[power]}".rstrip()
