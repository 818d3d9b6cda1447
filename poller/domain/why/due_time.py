"""How the next due time of a target was computed: the rule, and each of its steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from poller.domain.failures import backoff
from poller.domain.scheduling import interval, slots
from poller.domain.scheduling.interval import Decision
from poller.domain.why import phrases
from poller.domain.why.target_facts import BoardRow, TargetFacts


class Step(NamedTuple):
    """One term of the computation; `ms` is the interval or the wait after it, None for neither."""

    name: str
    text: str
    ms: int | None = None


class DueTime(NamedTuple):
    """When the target is due, by which rule. `at_ms` is 0 for at once, or unknown."""

    rule: str
    at_ms: int
    steps: tuple[Step, ...]


def due_time(facts: TargetFacts) -> DueTime | None:
    """Return the computation; None for a target that is not on the board."""
    board = facts.board
    if board is None:
        return None
    rule, steps = _rule(facts, board)
    at_ms = board.at_ms if board.place in ("due", "urgent", "parked") else 0
    return DueTime(rule, at_ms, tuple(steps))


def _rule(facts: TargetFacts, board: BoardRow) -> tuple[str, Iterator[Step]]:
    """The rule that set the instant, from the place and the status of the target."""
    if board.place == "held":
        return "with its site", iter([Step("site", "due when the site is no longer dark")])
    if board.place == "in_flight":
        return "after its poll", _usual_steps(facts, board)
    if board.place == "urgent" and not board.at_ms:
        return "on demand", iter([Step("demand", "at once, before all due targets")])
    if board.opening:
        return "end of the opening", iter([Step("opening", "due when the opening by hand ends")])
    if board.place == "parked":
        retry_ms = facts.rules.slow_retry_ms
        text = "deadletter_retry_s, up to a tenth earlier"
        return "slow retry", iter([Step("slow retry", text, retry_ms)])
    if board.status.breaker.trips:
        return "probe", _probe_steps(facts, board)
    return _usual_rule(facts, board), _usual_steps(facts, board)


def _usual_rule(facts: TargetFacts, board: BoardRow) -> str:
    if board.status.decision:
        return "adaptive interval"
    return "fixed interval" if _is_slot(facts, board) else "between two slots"


def _is_slot(facts: TargetFacts, board: BoardRow) -> bool:
    """Whether the target is due at a slot of its grid; also for an unknown instant."""
    if not board.at_ms or not board.interval_ms:
        return True
    phase_ms = slots.phase_ms(facts.target_id, board.interval_ms)
    return (board.at_ms - phase_ms) % board.interval_ms == 0


def _usual_steps(facts: TargetFacts, board: BoardRow) -> Iterator[Step]:
    decision = board.status.decision
    if decision:
        yield from _adaptive_steps(facts, decision)
        return
    yield Step("base", "the fixed interval", board.interval_ms)
    if not board.interval_ms:
        return
    phase_ms = slots.phase_ms(facts.target_id, board.interval_ms)
    yield Step("phase", "offset of its slots, from a hash of its id", phase_ms)
    if not _is_slot(facts, board):
        yield from _moved_step(facts, board)


def _moved_step(facts: TargetFacts, board: BoardRow) -> Iterator[Step]:
    """Why a due time is between two slots."""
    if board.status.failures and facts.rules.confirm_ms < board.interval_ms:
        text = "breaker_confirm_s: a failure is confirmed before the next slot"
        yield Step("errors", text, facts.rules.confirm_ms)
    else:
        yield Step("moved", "due between two slots: edited, handed back, or spread after a pause")


def _adaptive_steps(facts: TargetFacts, decision: Decision) -> Iterator[Step]:
    numbers = facts.rules.adaptive
    policy = facts.inventory.adaptive(numbers) if facts.inventory else numbers
    terms = interval.breakdown(policy, decision)
    score = f"score {decision.score:.2f} of source {decision.source or 'steady'}"
    errors = phrases.counted(decision.errors, "error")
    depth = phrases.counted(decision.depth, "waiting batch", "waiting batches")
    variation = f"up to {policy.jitter:.0%} of the smoothed interval"
    yield Step("base", "interval of a healthy target", terms.base_ms)
    yield Step("staleness", score, terms.staleness_ms)
    yield Step("errors", f"{errors} in a row", terms.errors_ms)
    yield Step("stretch", depth, terms.stretch_ms)
    yield Step("smoothing", f"weight {policy.alpha:g} of the new interval", terms.smoothed_ms)
    yield Step("jitter", variation, terms.chosen_ms)


def _probe_steps(facts: TargetFacts, board: BoardRow) -> Iterator[Step]:
    breaker = board.status.breaker
    rule = facts.rules.breaker.for_code(board.status.code)
    cap_ms = rule.longest_ms(board.status.ok_ms, facts.now_ms)
    wait_ms = round(backoff.exponential(breaker.trips, rule.base_ms, cap_ms))
    yield Step("base", "first wait of an open breaker", rule.base_ms)
    trips = phrases.counted(breaker.trips, "trip")
    yield Step("errors", f"{trips}, doubled with each after the first", wait_ms)
    yield Step("cap", "longest wait", cap_ms)
    yield Step("jitter", f"up to {facts.rules.breaker.jitter:.0%} shorter")
    yield Step("slot", "the last slot within the wait, at least the next one")
