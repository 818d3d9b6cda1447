"""The states of one alert: for, keep, unknown, and flapping."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.flow import flap_damping
from poller.domain.alerts.flow.alert_change import ChangeKind
from poller.domain.alerts.rule import Rule
from tests.unit.domain.alerts.alert_worlds import LOAD, World, device, of_target, target_subject

LOADED = of_target(1, LOAD)


def loaded(world: World, since_ms: int | None = None):
    return world.sign(LOAD, target_subject(1), since_ms)


def world_with(rule: Rule) -> World:
    world = World({1: device(1)})
    world.rules[rule.name] = rule
    return world


def kinds(world: World) -> list[ChangeKind]:
    return [each.kind for each in world.history]


def test_an_alert_without_a_wait_fires_at_its_first_sign() -> None:
    """A rule without `for` makes a firing alert at once, with one row of history."""
    world = World({1: device(1)})
    world.look(loaded(world))
    assert world.alert(LOADED).state is AlertState.FIRING
    assert kinds(world) == [ChangeKind.FIRED]


def test_an_alert_waits_until_its_condition_held_for_long_enough() -> None:
    """`for` counts from the beginning of the condition, not from the first look."""
    world = world_with(replace(LOAD, for_ms=60_000))
    began = world.at - 30_000
    kept = world.look(loaded(world, began))
    assert world.alert(LOADED).state is AlertState.PENDING
    assert kept.next_ms == began + 60_000
    world.at += 29_999
    world.look(full=False)
    assert world.alert(LOADED).state is AlertState.PENDING
    world.at += 1
    world.look(full=False)
    assert world.alert(LOADED).state is AlertState.FIRING


def test_a_pending_alert_that_goes_away_is_dropped() -> None:
    """No history is left of a condition that did not last."""
    world = world_with(replace(LOAD, for_ms=60_000))
    world.look(loaded(world))
    kept = world.look(gone=[LOADED])
    assert [each.id for each in kept.dropped] == [1]
    assert not world.open
    assert not world.history


def test_an_alert_ends_after_its_condition_was_gone_for_long_enough() -> None:
    """`keep` counts from the poll that showed the end, and a new sign starts it again."""
    world = world_with(replace(LOAD, keep_ms=60_000))
    world.look(loaded(world))
    world.look(gone=[LOADED])
    world.at += 50_000
    world.look(loaded(world))
    world.at += 50_000
    world.look(gone=[LOADED])
    world.at += 59_999
    world.look()
    assert world.alert(LOADED).state is AlertState.FIRING
    world.at += 1
    world.look()
    assert [each.state for each in world.ended] == [AlertState.RESOLVED]
    assert kinds(world) == [ChangeKind.FIRED, ChangeKind.RESOLVED]


def test_a_level_that_vanished_neither_ends_an_alert_nor_lets_it_fire() -> None:
    """Without a sign and without a proof, firing alerts stay and pending ones wait."""
    world = world_with(replace(LOAD, for_ms=60_000))
    world.look(loaded(world))
    for _ in range(100):
        world.at += 60_000
        world.look()
    assert world.alert(LOADED).state is AlertState.PENDING
    world.look(loaded(world, world.at - 60_000))
    assert world.alert(LOADED).state is AlertState.FIRING
    for _ in range(100):
        world.at += 60_000
        world.look()
    assert world.alert(LOADED).state is AlertState.FIRING
    assert world.alert(LOADED).gone_ms == 0


def test_an_alert_of_a_removed_rule_ends_with_the_reason() -> None:
    """What is no longer asked for is not told for ever."""
    world = World({1: device(1)})
    world.look(loaded(world))
    del world.rules[LOAD.name]
    world.look()
    assert not world.open
    assert world.history[-1].text == "the rule was removed"


def test_what_comes_and_goes_is_told_a_handful_of_times() -> None:
    """An interface that flaps every 20 s for an hour makes three firings and, in the end, three
    ends; the third firing stays open until it is quiet for a quarter of an hour.
    """
    world = World({1: device(1)})
    for _ in range(180):
        world.look(loaded(world))
        world.at += 10_000
        world.look(gone=[LOADED])
        world.at += 10_000
    assert len(world.told) == 3
    assert len(world.ended) == 2
    assert world.alert(LOADED).flaps == 3
    world.pass_time(1000, step_s=10)
    assert len(world.ended) == 3
    assert kinds(world).count(ChangeKind.FLAPPING) == 1
    quiet_ms = world.ended[-1].resolved_ms - world.ended[-1].gone_ms
    assert 800_000 < quiet_ms <= 900_000


def test_firings_that_are_an_hour_apart_are_no_flapping() -> None:
    """Only firings within the last hour count."""
    world = World({1: device(1)})
    for _ in range(10):
        world.look(loaded(world))
        world.look(gone=[LOADED])
        world.at += 1_900_000
    assert len(world.ended) == 10
    assert ChangeKind.FLAPPING not in kinds(world)


@given(st.lists(st.tuples(st.sampled_from(["holds", "gone", "unknown"]), st.integers(1, 120))))
def test_firings_and_ends_take_turns(steps: list[tuple[str, int]]) -> None:
    """Whatever is seen, an alert ends only after it fired, each firing ends at most once, and no
    alert ends without a sign that it is over.
    """
    world = world_with(replace(LOAD, for_ms=30_000, keep_ms=30_000))
    was_gone = False
    for seen, seconds in steps:
        world.at += seconds * 1000
        if seen == "holds":
            world.look(loaded(world))
        else:
            was_gone = was_gone or seen == "gone"
            world.look(gone=[LOADED] if seen == "gone" else [])
    told = [kind for kind in kinds(world) if kind is not ChangeKind.FLAPPING]
    assert told == [ChangeKind.FIRED, ChangeKind.RESOLVED] * (len(told) // 2) + (
        [ChangeKind.FIRED] if len(told) % 2 else []
    )
    assert was_gone or not world.ended


def test_instants_of_a_clock_that_was_ahead_become_the_present() -> None:
    """An alert that began a year ahead waits for no poll a year from now; a second is no step."""
    world = World({1: device(1)})
    now, year = world.at, 365 * 86_400_000
    world.at = now + year
    for _ in range(3):
        world.look(loaded(world))
        world.look(gone=[LOADED])
    world.look(loaded(world))
    assert world.alert(LOADED).damped_until_ms > now + year
    world.at = now
    world.look(loaded(world, now + year))
    alert = world.alert(LOADED)
    assert (alert.since_ms, alert.seen_ms, alert.fired_ms) == (now, now, now)
    assert alert.damped_until_ms == now + flap_damping.QUIET_MS
    assert alert in world.last.written

    world.at -= 1000
    world.look()
    assert world.alert(LOADED).seen_ms == now
