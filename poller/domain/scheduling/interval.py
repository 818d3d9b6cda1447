"""How long until the next poll of an adaptive target? One decision per poll, from values that are passed in.

The docs (docs/intervals.md) tell the formula in words; `explain` tells one decision to a person.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poller.domain.inventory import duration


class Policy(enum.StrEnum):
    FIXED = "fixed"  # always the same grid
    ADAPTIVE = "adaptive"  # between a shortest and a longest interval, by how things are


@dataclass(frozen=True, slots=True)
class Adaptive:
    """The numbers of one adaptive target. A longest interval below the shortest one counts as the shortest."""

    min_ms: int = 5_000
    base_ms: int = 10_000
    max_ms: int = 300_000
    alpha: float = 0.6  # weight of the new target against what was remembered
    jitter: float = (
        0.05  # share by which the result may stray, so that a fleet does not march in step
    )
    stretch: float = 0.1  # longer by this share for every batch that waits beyond the first
    penalty: float = 0.6  # shorter by 1 + this for every error, to confirm it quickly

    def between(self, min_ms: int, base_ms: int, max_ms: int) -> Adaptive:
        """The same with a target's own bounds."""
        return replace(self, min_ms=min_ms, base_ms=base_ms, max_ms=max_ms)

    @property
    def longest_ms(self) -> int:
        return max(self.min_ms, self.max_ms)

    @property
    def neutral(self) -> float:
        """The score that asks for the base: what a healthy target has."""
        room = self.longest_ms - self.min_ms
        return min(1.0, max(0.0, (self.longest_ms - self.base_ms) / room)) if room else 1.0


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a decision is made from."""

    score: float  # how stale the data is: 0 not at all, 1 as stale as it gets
    errors: int = 0  # failures in a row
    depth: int = 0  # batches of the same queue that are overdue
    previous_ms: float | None = (
        None  # remembered of the last decision (or the last interval); None: the base
    )
    chance: float = 0.5  # random, in [0, 1); 0.5 is no jitter
    source: str = ""  # who gave the score


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, and from what: kept with the target's status, so that it can be explained."""

    score: float
    errors: int
    depth: int
    target_ms: int  # where it wants to be
    smoothed_ms: int  # what the next decision starts from
    chosen_ms: int  # what it is, with jitter
    source: str = ""

    def pack(self) -> list[Any]:
        score = round(self.score, 6)
        return [
            score,
            self.errors,
            self.depth,
            self.target_ms,
            self.smoothed_ms,
            self.chosen_ms,
            self.source,
        ]


def unpack(values: Sequence[Any]) -> Decision:
    """Raises TypeError or ValueError when these are not the values of a decision."""
    score, errors, depth, target_ms, smoothed_ms, chosen_ms, source = values
    chosen = max(1, int(chosen_ms))
    return Decision(
        float(score), int(errors), int(depth), int(target_ms), int(smoothed_ms), chosen, str(source)
    )


def adapt(policy: Adaptive, inputs: Inputs) -> Decision:
    """The interval after this poll: by the score, shorter after errors, longer when batches wait.

    Errors never get far: once it is certain that nobody answers, the breaker takes over and nothing is decided here.
    """
    score = min(1.0, max(0.0, inputs.score))
    target = stretched(policy, hurried(policy, wanted(policy, score), inputs.errors), inputs.depth)
    before = policy.base_ms if inputs.previous_ms is None else inputs.previous_ms
    smoothed = _clamped(policy, policy.alpha * target + (1 - policy.alpha) * before)
    chosen = _clamped(policy, smoothed * (1 + policy.jitter * (2 * inputs.chance - 1)))
    numbers = (round(target), round(smoothed), round(chosen))
    return Decision(score, inputs.errors, inputs.depth, *numbers, inputs.source)


def next_ms(plan_ms: int, chosen_ms: int, finished_ms: int) -> int:
    """The first of plan + k * chosen after the end of the poll: never in the past, never further than one interval."""
    return plan_ms + ((finished_ms - plan_ms) // chosen_ms + 1) * chosen_ms


def wanted(policy: Adaptive, score: float) -> float:
    """From the longest interval (score 0) to the shortest (score 1)."""
    return policy.min_ms + (policy.longest_ms - policy.min_ms) * (1 - score)


def hurried(policy: Adaptive, interval_ms: float, errors: int) -> float:
    return (
        max(policy.min_ms, interval_ms / (1 + policy.penalty * errors))
        if errors > 0
        else interval_ms
    )


def stretched(policy: Adaptive, interval_ms: float, depth: int) -> float:
    if depth <= 1:
        return interval_ms
    return min(policy.longest_ms, interval_ms * (1 + policy.stretch * (depth - 1)))


def _clamped(policy: Adaptive, interval_ms: float) -> float:
    return min(policy.longest_ms, max(policy.min_ms, interval_ms))


def explain(policy: Adaptive, decision: Decision) -> str:
    """`every 8 s: base 10 s, 2 errors shorten to 6 s, smoothed`."""
    return f"every {duration.spoken(decision.chosen_ms)}: " + ", ".join(_reasons(policy, decision))


def _reasons(policy: Adaptive, decision: Decision) -> Iterator[str]:
    yield f"base {duration.spoken(policy.base_ms)}"
    now = wanted(policy, decision.score)
    if abs(decision.score - policy.neutral) > _NOTHING:
        yield f"staleness {decision.score:.2f} ({decision.source}) asks for {_spoken(now)}"
    if decision.errors:
        now = hurried(policy, now, decision.errors)
        yield f"{_errors(decision.errors)} to {_spoken(now)}"
    if decision.depth > 1:
        yield f"{decision.depth} waiting batches stretch to {_spoken(stretched(policy, now, decision.depth))}"
    if decision.smoothed_ms != decision.target_ms:
        yield "smoothed"
    if duration.spoken(decision.smoothed_ms) != duration.spoken(decision.chosen_ms):
        yield "jitter"


def _spoken(interval_ms: float) -> str:
    return duration.spoken(round(interval_ms))


def _errors(number: int) -> str:
    return "1 error shortens" if number == 1 else f"{number} errors shorten"


#: Scores closer than this are the same: they were rounded on their way to the board.
_NOTHING = 1e-5
