"""How a due time was computed, step by step."""

from __future__ import annotations

from dataclasses import replace

from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.scheduling import interval, slots
from poller.domain.scheduling.interval import Adaptive, Inputs
from poller.domain.why import due_time
from poller.domain.why.target_facts import Rules, TargetFacts
from tests.unit.domain.why.situations import ADAPTIVE_ROW, GOOD, HEALTHY, NOW, failing, on_board


def computed(facts: TargetFacts) -> tuple[str, dict[str, int | None]]:
    found = due_time.due_time(facts)
    assert found is not None
    return found.rule, {step.name: step.ms for step in found.steps}


def test_a_fixed_target_is_due_at_a_slot_of_its_grid() -> None:
    """Base interval and phase give the slot."""
    slot_ms = slots.next_slot_ms(7, 60_000, NOW)
    rule, steps = computed(on_board(at_ms=slot_ms))
    assert rule == "fixed interval"
    assert steps == {"base": 60_000, "phase": slots.phase_ms(7, 60_000)}


def test_an_adaptive_target_shows_every_term() -> None:
    """The terms lead from the base to the interval that was chosen."""
    policy = Adaptive().with_bounds(5_000, 10_000, 300_000)
    decision = interval.adapt(policy, Inputs(0.5, errors=2, depth=4, chance=1.0, source="age"))
    facts = replace(on_board(status=GOOD._replace(decision=decision)), inventory=ADAPTIVE_ROW)
    rule, steps = computed(facts)
    assert rule == "adaptive interval"
    assert steps["base"] == 10_000
    assert steps["staleness"] == 152_500
    assert steps["errors"] == round(152_500 / 2.2)
    assert steps["stretch"] == decision.target_ms
    assert (steps["smoothing"], steps["jitter"]) == (decision.smoothed_ms, decision.chosen_ms)


def test_an_open_breaker_doubles_its_wait_up_to_the_cap() -> None:
    """The third trip waits four times the base."""
    status = failing(6, breaker=Breaker(3, NOW - 1, NOW + 120_000))
    rule, steps = computed(on_board(place="urgent", status=status))
    assert rule == "probe"
    assert (steps["base"], steps["errors"], steps["cap"]) == (30_000, 120_000, 300_000)


def test_a_first_failure_is_confirmed_before_the_next_slot() -> None:
    """The step names the setting."""
    at_ms = slots.next_slot_ms(7, 60_000, NOW) + 1
    rule, steps = computed(on_board(at_ms=at_ms, status=failing(1)))
    assert (rule, steps["errors"]) == ("between two slots", Rules().confirm_ms)


def test_a_parked_target_waits_for_its_slow_retry() -> None:
    """The wait is that of the setting."""
    rule, steps = computed(on_board(place="parked"))
    assert (rule, steps["slow retry"]) == ("slow retry", 1_800_000)


def test_a_target_that_is_not_on_the_board_has_no_due_time() -> None:
    """None, not an invented instant."""
    assert due_time.due_time(replace(HEALTHY, board=None)) is None
