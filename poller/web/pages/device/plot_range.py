"""The range of the plots of a page, from its address: a length until now, or two instants.

Links zoom and pan without scripts. A range keeps its length when it is moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.inventory import duration
from poller.domain.series.series_plan import Range

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
#: The lengths to choose, by their names in the address.
LENGTHS: Mapping[str, int] = {
    "1h": _HOUR_MS,
    "6h": 6 * _HOUR_MS,
    "24h": _DAY_MS,
    "7d": 7 * _DAY_MS,
    "30d": 30 * _DAY_MS,
    "90d": 90 * _DAY_MS,
    "1y": 365 * _DAY_MS,
    "2y": 730 * _DAY_MS,
}
DEFAULT = "24h"
SHORTEST_MS = 5 * 60_000
LONGEST_MS = LENGTHS["2y"]
#: Points of a line beyond which a step is chosen: more cannot be seen.
POINTS = 400
_STEPS_MS = tuple(
    duration.parse_ms(text)
    for text in ("10s", "30s", "1m", "5m", "10m", "30m", "1h", "2h", "6h", "12h", "1d", "2d")
)
#: A range that ends within this time of now follows the clock.
_NOW_MS = 60_000


@dataclass(frozen=True, slots=True)
class ShownRange:
    """The time that the plots of a page cover. `name` is empty for one of two instants."""

    start_ms: int
    end_ms: int
    name: str = ""

    @property
    def length_ms(self) -> int:
        return self.end_ms - self.start_ms

    @property
    def text(self) -> str:
        """The length in words: `24h`, `3d 2h`."""
        return self.name or duration.rounded_text(self.length_ms)

    def asked(self, interval_ms: int) -> Range:
        """The question to the history: with a step if every poll would be too many points."""
        step_ms = step(self.length_ms)
        return Range(self.start_ms, self.end_ms, step_ms if step_ms > interval_ms else None)

    def parameters(self) -> dict[str, str]:
        """The parameters of an address with this range."""
        if self.name:
            return {"range": self.name}
        return {"from": str(self.start_ms), "until": str(self.end_ms)}


@dataclass(frozen=True, slots=True)
class RangeLink:
    """A link to another range."""

    title: str
    parameters: Mapping[str, str]
    chosen: bool = False
    rel: str = ""


def parse(name: str, from_ms: int | None, until_ms: int | None, now_ms: int) -> ShownRange:
    """Return the range of an address. Raises InvalidInput."""
    if from_ms is None and until_ms is None:
        return named(name or DEFAULT, now_ms)
    if from_ms is None or until_ms is None:
        raise errors.InvalidInput("from, until: give both", hint="or range, such as range=24h")
    if until_ms <= from_ms:
        raise errors.InvalidInput("until: the range is empty", hint="until must be after from")
    return clipped(from_ms, until_ms, now_ms)


def named(name: str, now_ms: int) -> ShownRange:
    """Return the range of a length until now. Raises InvalidInput for an unknown one."""
    length_ms = LENGTHS.get(name)
    if length_ms is None:
        known = ", ".join(LENGTHS)
        raise errors.InvalidInput(f'range: "{name}" is none of the ranges', hint=f"one of {known}")
    return ShownRange(now_ms - length_ms, now_ms, name)


def clipped(start_ms: int, end_ms: int, now_ms: int) -> ShownRange:
    """Return a range of a length that can be shown, which does not end after now."""
    length_ms = max(SHORTEST_MS, min(LONGEST_MS, end_ms - start_ms))
    middle_ms = (start_ms + end_ms) // 2
    end_ms = min(now_ms, middle_ms + length_ms // 2)
    return ShownRange(max(0, end_ms - length_ms), max(end_ms, length_ms))


def step(length_ms: int) -> int:
    """Return the shortest step that gives at most `POINTS` points."""
    return next((each for each in _STEPS_MS if length_ms <= POINTS * each), _STEPS_MS[-1])


def choices(shown: ShownRange) -> Sequence[RangeLink]:
    """The links to the lengths."""
    return [RangeLink(name, {"range": name}, name == shown.name) for name in LENGTHS]


def moves(shown: ShownRange, now_ms: int) -> Sequence[RangeLink]:
    """The links that move the range, or change its length around its middle."""
    half_ms = shown.length_ms // 2
    quarter_ms = half_ms // 2
    is_at_end = shown.end_ms >= now_ms - _NOW_MS
    links = [_moved("◀ earlier", shown.start_ms - half_ms, shown.end_ms - half_ms, now_ms, "prev")]
    if not is_at_end:
        later = _moved("later ▶", shown.start_ms + half_ms, shown.end_ms + half_ms, now_ms, "next")
        links.append(later)
    if half_ms >= SHORTEST_MS:
        first_ms = shown.end_ms - half_ms if is_at_end else shown.start_ms + quarter_ms
        last_ms = shown.end_ms if is_at_end else shown.end_ms - quarter_ms
        links.append(_moved("zoom in", first_ms, last_ms, now_ms))
    if shown.length_ms < LONGEST_MS:
        wider = _moved("zoom out", shown.start_ms - half_ms, shown.end_ms + half_ms, now_ms)
        links.append(wider)
    return links


def _moved(title: str, start_ms: int, end_ms: int, now_ms: int, rel: str = "") -> RangeLink:
    return RangeLink(title, clipped(start_ms, end_ms, now_ms).parameters(), rel=rel)
