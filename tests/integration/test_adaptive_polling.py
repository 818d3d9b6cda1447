"""Adaptive targets in a worker: each poll decides when the next one is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poller.collectors.registry import Broken
from poller.collectors.staleness_registry import Sources
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.scheduling import slots
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.staleness import Evidence
from poller.state.board.board_values import ClaimLimits
from poller.workers.batch.worker_poller import Poller
from tests.integration.worlds import QUEUE, World

ADAPTIVE: dict[str, Any] = {
    "policy": Policy.ADAPTIVE,
    "interval_ms": 10_000,
    "min_ms": 5_000,
    "max_ms": 300_000,
}


def test_a_fixed_interval_stays_as_it_is(world: World) -> None:
    """A fixed target stays on its grid, and its status holds no decision."""
    ids = world.add("answer", "dead", interval_ms=37_000)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(6):
        world.poll_now(ids, f"t{number}")
    for target_id in ids:
        assert (world.due_ms(target_id) - slots.phase_ms(target_id, 37_000)) % 37_000 == 0
        assert world.board.statuses(ids)[target_id].decision is None


def test_a_healthy_adaptive_target_is_polled_at_its_base(world: World) -> None:
    """The next poll is the plan time plus the chosen interval, within the jitter; the inputs are
    stored.
    """
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(5):
        world.poll_now(ids, f"t{number}")
        found, status = world.decision(ids[0]), world.board.statuses(ids)[ids[0]]
        assert (found.target_ms, found.smoothed_ms, found.errors, found.source) == (
            10_000,
            10_000,
            0,
            "steady",
        )
        assert 9_500 <= found.chosen_ms <= 10_500
        assert world.due_ms(ids[0]) == status.run_ms + found.chosen_ms
    assert status.missed == 0


def test_a_failing_adaptive_target_is_confirmed_and_then_left_alone(world: World) -> None:
    """Two failures shorten the interval; the third opens the breaker, whose waits grow."""
    ids = world.add("dead", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    found = [world.decision(ids[0])]
    world.poll_now(ids, "t1")
    found.append(world.decision(ids[0]))
    assert [decision.errors for decision in found] == [1, 2]
    assert all(5_000 <= decision.chosen_ms < 10_000 for decision in found)
    world.poll_now(ids, "u")
    status = world.board.statuses(ids)[ids[0]]
    assert (status.decision, status.breaker.trips) == (None, 1)
    assert 17_000 <= world.due_ms(ids[0]) - status.finished_ms <= 30_000


def test_reconcile_does_not_postpone_a_pending_poll(world: World) -> None:
    """Five passes of reconcile, each after an edit that leaves the schedule alone, move nothing."""
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    before = world.due_ms(ids[0])
    for version in range(2, 7):
        world.board.place(
            "", [(TargetSpec(ids[0], version, QUEUE, 10_000, 2_000), before + version)], version
        )
    assert world.due_ms(ids[0]) == before


def test_an_edit_brings_back_a_target_that_was_left_alone(world: World) -> None:
    """The edit may have repaired the target, so it does not wait for the rest of its long
    interval.
    """
    ids = world.add("dead", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    for number in range(5):
        world.poll_now(ids, f"t{number}")
    now_ms = world.board.now_ms()
    assert world.due_ms(ids[0]) > now_ms + 30_000
    world.board.place("", [(TargetSpec(ids[0], 2, QUEUE, 10_000, 2_000), now_ms)], 2)
    assert world.due_ms(ids[0]) <= now_ms


def test_a_quiet_device_is_polled_slowly_and_a_busy_one_quickly(world: World) -> None:
    """The score is the share of gauges that changed since this worker's last poll; the first poll
    has none.
    """
    ids = world.add("quiet", "busy", **ADAPTIVE, staleness="change")
    world.claim()
    world.poller.poll("t", ids)
    assert [world.decision(i).target_ms for i in ids] == [10_000, 10_000]
    world.poll_now(ids, "u")
    assert [(world.decision(i).score, world.decision(i).target_ms) for i in ids] == [
        (0.0, 300_000),
        (1.0, 5_000),
    ]


def test_waiting_batches_of_the_queue_stretch_it(world: World) -> None:
    """More than two batches of 64 targets are overdue when the poll starts."""
    ids = world.add(*["answer"] * 150, **ADAPTIVE)
    world.board.claim(
        "", "t", "", {QUEUE: 100}, ClaimLimits(targets=1, batch_size=64, lease_ms=30_000)
    )
    [mine] = [i for i in ids if world.services.redis.zscore(world.services.keys.inflight, str(i))]
    world.poller.poll("t", [mine])
    assert (world.decision(mine).depth, world.decision(mine).target_ms) == (3, 12_000)


def test_missed_slots_are_counted_by_what_was_chosen(world: World) -> None:
    """Missed slots count by the chosen interval, not by the base: four intervals make three missed
    slots.
    """
    ids = world.add("answer", **ADAPTIVE)
    world.claim()
    world.poller.poll("t", ids)
    now_ms, before = world.board.now_ms(), world.board.statuses(ids)[ids[0]]
    decided = replace(world.decision(ids[0]), chosen_ms=50_000)
    late = before._replace(run_ms=now_ms - 200_000, decision=decided)
    world.services.redis.hset(world.services.keys.status, str(ids[0]), late.pack())
    world.poll_now(ids, "u")
    assert world.board.statuses(ids)[ids[0]].missed == 3


def test_a_staleness_source_that_fails_leaves_its_targets_steady(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failing source is logged once, not once per poll; so is a source that cannot be
    loaded.
    """

    def bad(evidence: Evidence) -> float:
        raise KeyError("no such metric")

    world.services.staleness = Sources({"bad": bad}, (Broken("odd", "acme 1", "no luck"),))  # type: ignore[misc]
    world.services.configure_logs()
    world.poller = Poller(world.services, "worker@test")
    ids = world.add("answer", **ADAPTIVE, staleness="bad")
    world.claim()
    world.poller.poll("t", ids)
    world.poll_now(ids, "u")
    assert (world.decision(ids[0]).source, world.decision(ids[0]).target_ms) == ("steady", 10_000)
    said = "".join(capsys.readouterr())
    assert (said.count("no such metric"), said.count("no luck")) == (1, 1)
