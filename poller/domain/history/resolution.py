"""Which of raw polls, 5-minute and hourly roll-ups serves a question about the past."""

from __future__ import annotations

import enum
from dataclasses import dataclass

#: Points of a line that are drawn or listed without a wish for a step.
POINTS = 1_500


class Resolution(enum.StrEnum):
    """A form in which the past is kept."""

    RAW = "raw"
    FIVE_MINUTES = "5m"
    HOUR = "1h"


_STEPS_MS = {Resolution.FIVE_MINUTES: 300_000, Resolution.HOUR: 3_600_000}


@dataclass(frozen=True, slots=True)
class KeptSpans:
    """How far back each form reaches, in milliseconds before now; 0: it is not kept."""

    raw_ms: int
    five_minutes_ms: int
    hour_ms: int

    def of(self, resolution: Resolution) -> int:
        return {
            Resolution.RAW: self.raw_ms,
            Resolution.FIVE_MINUTES: self.five_minutes_ms,
            Resolution.HOUR: self.hour_ms,
        }[resolution]


def step_of(resolution: Resolution, interval_ms: int) -> int:
    """Return the time from one point to the next: that of polls for raw ones."""
    return _STEPS_MS.get(resolution, interval_ms)


def choose(
    start_ms: int,
    end_ms: int,
    now_ms: int,
    interval_ms: int,
    kept: KeptSpans,
    step_ms: int | None = None,
) -> Resolution:
    """Return the form that answers for [start, end).

    With a step: the coarsest form that is fine enough. Without one: the finest that gives at most
    `POINTS` points. Forms that do not reach back to the start are left out; if none does, the one
    that reaches back the furthest answers.
    """
    age_ms = now_ms - start_ms
    reaching = [form for form in Resolution if kept.of(form) >= age_ms]
    if not reaching:
        return max(Resolution, key=kept.of)
    if step_ms is not None:
        fine_enough = [form for form in reaching if step_of(form, interval_ms) <= step_ms]
        return fine_enough[-1] if fine_enough else reaching[0]
    for form in reaching:
        if (end_ms - start_ms) // max(1, step_of(form, interval_ms)) <= POINTS:
            return form
    return reaching[-1]
