"""The interval of an adaptive target: one decision per poll, from values that are passed in.

docs/intervals.md has the formula in words; `explain` puts one decision into words.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poller.domain.inventory import duration

#: Scores that differ by less are equal: the board stores rounded scores.
_SAME_SCORE = 1e-5


class Policy(enum.StrEnum):
    FIXED = "fixed"  # always the same grid
    ADAPTIVE = "adaptive"  # between a shortest and a longest interval, by the state of the target


@dataclass(frozen=True, slots=True)
class Adaptive:
    """The numbers of one adaptive target.

    A longest interval below the shortest one counts as the shortest.
    """

    min_ms: int = 5_000
    base_ms: int = 10_000
    max_ms: int = 300_000
    alpha: float = 0.6  # weight of the new interval against the smoothed one
    jitter: float = 0.05  # share by which the interval may vary, so that a fleet spreads out
    stretch: float = (
        0.1  # share by which each waiting batch beyond the first lengthens the interval
    )
    penalty: float = (
        0.6  # each error divides the interval by 1 + this, to confirm a failure quickly
    )

    def with_bounds(self, min_ms: int, base_ms: int, max_ms: int) -> Adaptive:
        """Return the same numbers with a target's own bounds."""
        return replace(self, min_ms=min_ms, base_ms=base_ms, max_ms=max_ms)

    @property
    def longest_ms(self) -> int:
        """The longest interval, at least the shortest."""
        return max(self.min_ms, self.max_ms)

    @property
    def neutral(self) -> float:
        """The score of the base interval, which a healthy target has."""
        span = self.longest_ms - self.min_ms
        if not span:
            return 1.0

        share = (self.longest_ms - self.base_ms) / span
        return min(1.0, max(0.0, share))


@dataclass(frozen=True, slots=True)
class Inputs:
    """The values that one decision depends on."""

    score: float  # staleness of the data: 0 fresh, 1 as stale as possible
    errors: int = 0  # failures in a row
    depth: int = 0  # overdue batches of the same queue
    previous_ms: float | None = None  # smoothed interval of the last decision; None: the base
    chance: float = 0.5  # random, in [0, 1); 0.5 is no jitter
    source: str = ""  # staleness source of the score


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision with its inputs, stored in the target's status, so that it can be explained."""

    score: float
    errors: int
    depth: int
    target_ms: int  # the interval before smoothing
    smoothed_ms: int  # the start of the next decision
    chosen_ms: int  # the interval, with jitter
    source: str = ""

    def pack(self) -> list[Any]:
        return [
            round(self.score, 6),
            self.errors,
            self.depth,
            self.target_ms,
            self.smoothed_ms,
            self.chosen_ms,
            self.source,
        ]


def unpack(values: Sequence[Any]) -> Decision:
    """Return the decision of packed values. Raises TypeError or ValueError for any other values."""
    score, errors, depth, target_ms, smoothed_ms, chosen_ms, source = values
    return Decision(
        score=float(score),
        errors=int(errors),
        depth=int(depth),
        target_ms=int(target_ms),
        smoothed_ms=int(smoothed_ms),
        chosen_ms=max(1, int(chosen_ms)),
        source=str(source),
    )


def adapt(policy: Adaptive, inputs: Inputs) -> Decision:
    """Return the interval after a poll: by score, shorter after errors, longer for a backlog.

    Errors shorten it only until the breaker opens; an open breaker makes no decision.
    """
    score = min(1.0, max(0.0, inputs.score))

    by_score = interval_of_score(policy, score)
    confirming = shortened(policy, by_score, inputs.errors)
    target = lengthened(policy, confirming, inputs.depth)

    before = policy.base_ms if inputs.previous_ms is None else inputs.previous_ms
    smoothed = _clamped(policy, policy.alpha * target + (1 - policy.alpha) * before)
    variation = policy.jitter * (2 * inputs.chance - 1)
    chosen = _clamped(policy, smoothed * (1 + variation))

    return Decision(
        score=score,
        errors=inputs.errors,
        depth=inputs.depth,
        target_ms=round(target),
        smoothed_ms=round(smoothed),
        chosen_ms=round(chosen),
        source=inputs.source,
    )


def next_ms(plan_ms: int, chosen_ms: int, finished_ms: int) -> int:
    """Return the first plan + k * chosen after the end of the poll: at most one interval away."""
    intervals = (finished_ms - plan_ms) // chosen_ms + 1
    return plan_ms + intervals * chosen_ms


def interval_of_score(policy: Adaptive, score: float) -> float:
    """Return the longest interval for score 0, the shortest for score 1, linear in between."""
    span = policy.longest_ms - policy.min_ms
    return policy.min_ms + span * (1 - score)


def shortened(policy: Adaptive, interval_ms: float, errors: int) -> float:
    """Return the interval after errors in a row."""
    if errors <= 0:
        return interval_ms
    divisor = 1 + policy.penalty * errors
    return max(policy.min_ms, interval_ms / divisor)


def lengthened(policy: Adaptive, interval_ms: float, depth: int) -> float:
    """Return the interval while batches of the same queue wait."""
    if depth <= 1:
        return interval_ms
    factor = 1 + policy.stretch * (depth - 1)
    return min(policy.longest_ms, interval_ms * factor)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """The interval of a decision after each of its terms, in ms."""

    base_ms: int
    staleness_ms: int
    errors_ms: int
    stretch_ms: int
    smoothed_ms: int
    chosen_ms: int  # with jitter


def breakdown(policy: Adaptive, decision: Decision) -> Breakdown:
    """Return the interval after each term of a stored decision."""
    by_score = interval_of_score(policy, decision.score)
    confirming = shortened(policy, by_score, decision.errors)
    stretched = lengthened(policy, confirming, decision.depth)
    return Breakdown(
        base_ms=policy.base_ms,
        staleness_ms=round(by_score),
        errors_ms=round(confirming),
        stretch_ms=round(stretched),
        smoothed_ms=decision.smoothed_ms,
        chosen_ms=decision.chosen_ms,
    )


def _clamped(policy: Adaptive, interval_ms: float) -> float:
    at_least = max(policy.min_ms, interval_ms)
    return min(policy.longest_ms, at_least)


def explain(policy: Adaptive, decision: Decision) -> str:
    """Return a sentence: `every 8 s: base 10 s, 2 errors shorten to 6 s, smoothed`."""
    reasons = ", ".join(_reasons(policy, decision))
    return f"every {duration.rounded_text(decision.chosen_ms)}: {reasons}"


def _reasons(policy: Adaptive, decision: Decision) -> Iterator[str]:
    terms = breakdown(policy, decision)
    yield f"base {duration.rounded_text(terms.base_ms)}"

    if abs(decision.score - policy.neutral) > _SAME_SCORE:
        source = f"staleness {decision.score:.2f} ({decision.source})"
        yield f"{source} asks for {duration.rounded_text(terms.staleness_ms)}"
    if decision.errors:
        errors = "1 error shortens" if decision.errors == 1 else f"{decision.errors} errors shorten"
        yield f"{errors} to {duration.rounded_text(terms.errors_ms)}"
    if decision.depth > 1:
        stretched = duration.rounded_text(terms.stretch_ms)
        yield f"{decision.depth} waiting batches stretch to {stretched}"

    if decision.smoothed_ms != decision.target_ms:
        yield "smoothed"
    if duration.rounded_text(decision.smoothed_ms) != duration.rounded_text(decision.chosen_ms):
        yield "jitter"
