"""How a question about a range is answered: the form of history, the step, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace

from poller import errors
from poller.domain.history import resolution
from poller.domain.history.resolution import POINTS, KeptSpans, Resolution
from poller.domain.inventory import duration

#: Points of a line that a step may ask for.
MOST_POINTS = 11_000
SHORTEST_STEP_MS = 1_000
LONGEST_STEP_MS = 366 * 86_400_000
#: Rows may stay this long past their retention: a month of PostgreSQL goes as a whole.
_LEFT_OVER_MS = 32 * 86_400_000
#: A range may end a little after now: clocks differ.
_AHEAD_MS = 86_400_000
_NAMES = {
    Resolution.RAW: "raw polls",
    Resolution.FIVE_MINUTES: "5-minute roll-ups",
    Resolution.HOUR: "hourly roll-ups",
}


@dataclass(frozen=True, slots=True)
class SeriesPlan:
    """A range [start, end), the form that answers for it, and the step of the answer.

    A `step_ms` of 0: every poll is a point. `base_ms` is the step of the form; 0 for raw polls.
    """

    resolution: Resolution
    start_ms: int
    end_ms: int
    step_ms: int
    base_ms: int
    why: str

    @property
    def points(self) -> int:
        """The number of points of a line that has a step; 0 for raw points."""
        return (self.end_ms - self.start_ms) // self.step_ms if self.step_ms else 0

    def sentence(self) -> str:
        """Say which form answers and why: `hourly roll-ups: raw polls would be 43,200 points`."""
        form = _NAMES[self.resolution]
        if self.step_ms not in (0, self.base_ms):
            form += f" joined to steps of {duration.format_ms(self.step_ms)}"
        return f"{form}: {self.why}"


@dataclass(frozen=True, slots=True)
class Range:
    """A range as asked for. A `step_ms` of None leaves the step to the plan."""

    start_ms: int
    end_ms: int
    step_ms: int | None = None


def plan(asked: Range, interval_ms: int, kept: KeptSpans, now_ms: int) -> SeriesPlan:
    """Return the plan of a range. `interval_ms` is the shortest one of the targets.

    Time of which nothing can be stored is left out: it would only cost memory. Raises InvalidInput
    for a range that is empty or in the future, or a step with too many points.
    """
    _check(asked)
    asked = _storable(asked, kept, now_ms)
    chosen = resolution.choose(
        asked.start_ms, asked.end_ms, now_ms, interval_ms, kept, asked.step_ms
    )
    base_ms = 0 if chosen is Resolution.RAW else resolution.step_of(chosen, interval_ms)
    step_ms = _step(asked, chosen, base_ms, interval_ms)
    why = _why(asked, chosen, interval_ms, kept, now_ms)
    if not step_ms:
        return SeriesPlan(chosen, asked.start_ms, asked.end_ms, 0, 0, why)
    start_ms = asked.start_ms // step_ms * step_ms
    end_ms = -(-asked.end_ms // step_ms) * step_ms
    found = SeriesPlan(chosen, start_ms, end_ms, step_ms, base_ms, why)
    if found.points > MOST_POINTS:
        shortest = duration.format_ms(-(-(asked.end_ms - asked.start_ms) // MOST_POINTS))
        raise errors.InvalidInput(
            f"step: {found.points:,} points are more than {MOST_POINTS:,}",
            hint=f"a step of at least {shortest}, or a shorter range",
        )
    return found


def _check(asked: Range) -> None:
    if asked.end_ms <= asked.start_ms:
        raise errors.InvalidInput("until: the range is empty", hint="until must be after since")
    if asked.step_ms is None:
        return
    if asked.step_ms < SHORTEST_STEP_MS:
        raise errors.InvalidInput("step: at least 1s", hint="for example 5m or 1h")
    if asked.step_ms > LONGEST_STEP_MS:
        raise errors.InvalidInput("step: at most 366d", hint="for example 1h or 1d")


def _storable(asked: Range, kept: KeptSpans, now_ms: int) -> Range:
    """Return the part of a range of which something may be stored."""
    end_ms = min(asked.end_ms, now_ms + _AHEAD_MS)
    if asked.start_ms >= end_ms:
        raise errors.InvalidInput("since: the range has not begun", hint="name a time of the past")
    longest_ms = max(map(kept.of, Resolution)) + _LEFT_OVER_MS
    first_ms = min(now_ms, end_ms) - longest_ms
    return replace(asked, start_ms=max(asked.start_ms, first_ms), end_ms=end_ms)


def _step(asked: Range, chosen: Resolution, base_ms: int, interval_ms: int) -> int:
    """Return the step of the answer: a multiple of the form's own; 0 for every poll."""
    length_ms = asked.end_ms - asked.start_ms
    unit_ms = base_ms or max(interval_ms, SHORTEST_STEP_MS)
    if asked.step_ms is not None:
        return -(-asked.step_ms // base_ms) * base_ms if base_ms else asked.step_ms
    if length_ms // unit_ms <= POINTS:
        return base_ms
    return unit_ms * -(-length_ms // (POINTS * unit_ms))


def _why(asked: Range, chosen: Resolution, interval_ms: int, kept: KeptSpans, now_ms: int) -> str:
    age_ms = now_ms - asked.start_ms
    if kept.of(chosen) < age_ms:
        reach = duration.rounded_text(kept.of(chosen))
        return f"nothing reaches back to the start; these reach back {reach}, further than others"
    finer = [form for form in Resolution if resolution.step_of(form, interval_ms)
             < resolution.step_of(chosen, interval_ms)]  # fmt: skip
    if asked.step_ms is not None:
        return f"the coarsest that has a step of {duration.format_ms(asked.step_ms)}"
    reaching = [form for form in finer if kept.of(form) >= age_ms]
    if reaching:
        polls = (asked.end_ms - asked.start_ms) // resolution.step_of(reaching[-1], interval_ms)
        return f"{_NAMES[reaching[-1]]} would be {polls:,} points, more than {POINTS:,}"
    if finer:
        reach = duration.rounded_text(kept.of(finer[-1]))
        return f"{_NAMES[finer[-1]]} are kept for {reach}"
    return "the range is short enough for every poll"
