"""The board on a real server: each target is in exactly one place, under any fault."""

from __future__ import annotations

from dataclasses import replace

import pytest
import redis

from poller.domain.failures.outcome import Result
from poller.domain.record.overview import State
from poller.state.board.board_maintenance import BoardMaintenance
from poller.state.board.board_repair import Repair
from poller.state.board.board_values import ClaimLimits, Move, NotLeader, Place
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import ROUTINE_MARK, Keys
from tests.integration.boards import LIMITS, NOW, QUEUE, assert_sound, claim, fill, spec, start


def test_a_claim_moves_due_targets_in_flight(board: Board, leader: Leadership) -> None:
    """A target that is not due yet stays; a claimed one has its queue."""
    ids = fill(board, leader)
    board.place(leader.token, [(spec(99), NOW + 1)], 2)
    taken = claim(board, leader)
    assert [int(i) for i in taken.parts[0].ids] == ids
    assert not taken.repeated
    assert_sound(board, [*ids, 99])
    assert claim(board, leader, "b", "a").token == ""


def test_a_claim_that_was_not_published_is_repeated(board: Board, leader: Leadership) -> None:
    """A lost reply, a kill or a new leader in between strands no target."""
    ids = fill(board, leader)
    first = claim(board, leader, "a")
    second = claim(board, leader, "b")
    assert (second.token, second.repeated, second.parts) == ("a", True, first.parts)
    assert claim(board, leader, "c", published="a").token == ""
    assert_sound(board, ids)


def test_a_run_starts_once(board: Board, leader: Leadership) -> None:
    """A second delivery is a duplicate; the same call repeated after a lost reply is not."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    assert start(board, "a", ids, call="one") == [Result.OK]
    assert start(board, "a", ids, call="one") == [Result.OK]
    assert start(board, "a", ids, call="two") == [Result.DUPLICATE]
    assert start(board, "a", ids, attempt=1, call="three") == [Result.OK]


def test_a_message_of_an_older_claim_is_stale(board: Board, leader: Leadership) -> None:
    """`start` refuses a batch that a paused leader publishes late."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    board.reap(leader.token, now_ms=NOW + 60_000)
    assert start(board, "a", ids) == [Result.STALE]
    board.claim(leader.token, "b", "a", {QUEUE: 100}, LIMITS, NOW + 60_000)
    assert start(board, "a", ids) == [Result.STALE]
    assert start(board, "b", ids) == [Result.OK]


def test_finish_puts_a_target_at_its_next_slot_with_its_status(
    board: Board, leader: Leadership
) -> None:
    """The counts by state follow the statuses."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    moves = [
        Move(1, NOW + 60_000, "o[1]"),
        Move(2, NOW + 60_000, "f[1]"),
        Move(3, NOW + 9, "f[1]", place=Place.PARKED),
    ]
    finished = board.finish("a", moves, stats={"polls": 3, "lmax": 7}, errors=["e1"], now_ms=NOW)
    assert finished.results == [Result.OK] * 3
    assert_sound(board, ids)
    counts = board.redis.hgetall(board.keys.counts)
    assert counts == {"u": "0", "o": "1", "f": "2"}
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 60_000
    assert board.redis.zscore(board.keys.parked, "3") == NOW + 9
    assert board.statuses([1])[1].state is State.OK


def test_a_steady_target_keeps_its_queue_unless_it_was_edited(
    board: Board, leader: Leadership
) -> None:
    """A target that was edited in flight goes to its new queue, at the instant of `place`."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    moves = [Move(i, NOW + 60_000, "o[1]", steady=True) for i in ids]
    board.finish("a", moves[:1], now_ms=NOW, queue=QUEUE)
    board.place(
        leader.token,
        [(spec(2, version=2, queue="poll.new"), NOW + 9), (spec(3, enabled=False), NOW)],
        2,
    )
    assert board.finish("a", moves[1:], now_ms=NOW, queue=QUEUE).results == [Result.OK, Result.GONE]
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 60_000
    assert board.redis.zscore(board.keys.due("poll.new"), "2") == NOW + 9
    assert not board.redis.exists(board.keys.inflight, board.keys.run, board.keys.edited)
    assert_sound(board, [1, 2])


def test_a_repeated_finish_is_counted_once(board: Board, leader: Leadership) -> None:
    """The reply was lost and the worker repeats the call."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", ids)
    for expected in (Result.OK, Result.STALE):
        assert board.finish(
            "a", [Move(1, NOW + 60_000, "o[1]")], stats={"polls": 1}, errors=["e"], now_ms=NOW
        ).results == [expected]
    assert board.redis.hget(board.keys.totals, "polls") == "1"
    assert board.redis.llen(board.keys.errors) == 1


def test_a_run_without_a_plan_was_planned_for_now(board: Board, leader: Leadership) -> None:
    """A damaged run record does not stop the batch."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    board.redis.hset(board.keys.run, "1", "a|rubbish|0|")
    found = board.start("a", 0, "c", 15_000, ids, NOW + 5).targets
    assert [(answer.result, answer.plan_ms) for answer in found] == [
        (Result.OK, NOW + 5),
        (Result.OK, NOW),
    ]


def test_a_worker_that_lost_its_lease_is_refused(board: Board, leader: Leadership) -> None:
    """The new run of the target goes on undisturbed."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", ids)
    assert [item.id for item in board.reap(leader.token, now_ms=NOW + 60_000)] == ids
    board.claim(leader.token, "b", "a", {QUEUE: 100}, LIMITS, NOW + 60_000)
    assert board.finish("a", [Move(1, NOW, "o[1]")]).results == [Result.STALE]
    assert_sound(board, ids)
    assert start(board, "b", ids) == [Result.OK]


def test_hold_extends_a_lease_under_the_same_token(board: Board, leader: Leadership) -> None:
    """`hold` never shortens a lease and refuses a foreign token."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    assert board.hold("a", 60_000, ids, NOW) == {1: Result.OK, 2: Result.OK}
    assert board.redis.zscore(board.keys.inflight, "1") == NOW + 60_000
    assert board.hold("a", 1_000, ids, NOW)[1] is Result.OK
    assert board.redis.zscore(board.keys.inflight, "1") == NOW + 60_000
    assert set(board.hold("b", 60_000, ids, NOW).values()) == {Result.STALE}
    board.finish("a", [Move(1, NOW)])
    assert board.hold("a", 60_000, ids, NOW)[2] is Result.OK


def test_only_the_leader_moves_targets(board: Board, leader: Leadership) -> None:
    """Every move with the token of a former leader is refused."""
    fill(board, leader)
    for act in (
        lambda: board.claim("old", "a", "", {QUEUE: 100}, LIMITS, NOW),
        lambda: board.reap("old"),
        lambda: board.place("old", [(spec(1), NOW)], 9),
        lambda: BoardMaintenance(board).respread("old", QUEUE, [(1, NOW, NOW + 5)]),
    ):
        with pytest.raises(NotLeader):
            act()
    assert board.version() == 1


def test_back_pressure_leaves_the_rest_on_the_board(board: Board, leader: Leadership) -> None:
    """The claim fills the queue up to its limit; the other targets stay due."""
    ids = fill(board, leader, 50)
    board.redis.lpush(QUEUE + ROUTINE_MARK, "waiting batch")
    taken = claim(board, leader, waiting=3)
    assert len(taken.parts[0].ids) == 20
    assert_sound(board, ids)


def test_edits_reach_waiting_parked_and_in_flight_targets(board: Board, leader: Leadership) -> None:
    """A waiting or parked target moves at once, a target in flight when it finishes."""
    fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", [1, 2, 3])
    board.finish(
        "a",
        [Move(2, NOW + 60_000, "o[1]"), Move(3, NOW + 60_000, "f[1]", place=Place.PARKED)],
        now_ms=NOW,
    )
    board.place(
        leader.token, [(spec(i, version=2, interval_ms=10_000), NOW + 10_000) for i in (1, 2, 3)], 2
    )
    assert board.redis.zscore(board.keys.due(QUEUE), "2") == NOW + 10_000
    assert board.redis.zscore(board.keys.due(QUEUE), "3") == NOW + 10_000
    board.finish("a", [Move(1, NOW + 60_000, "o[1]")], now_ms=NOW + 50)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 10_000
    assert_sound(board, [1, 2, 3])


def test_an_edit_that_does_not_touch_the_schedule_keeps_the_slot(
    board: Board, leader: Leadership
) -> None:
    """A renamed device is polled at its old slot."""
    fill(board, leader, 1)
    board.place(leader.token, [(spec(1, version=2), NOW + 99_999)], 2)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW


def test_a_changed_queue_moves_the_target(board: Board, leader: Leadership) -> None:
    """The target is due in the new queue only."""
    fill(board, leader, 1)
    board.place(leader.token, [(spec(1, version=2, queue="poll.snmp;zone=dmz"), NOW)], 2)
    assert_sound(board, [1])
    assert board.redis.zscore(board.keys.due("poll.snmp;zone=dmz"), "1") == NOW


def test_a_target_removed_in_flight_is_gone_when_it_finishes(
    board: Board, leader: Leadership
) -> None:
    """The late result is discarded and no record of the target stays."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(i, enabled=False), NOW) for i in (1, 2)], 2)
    assert board.finish("a", [Move(1, NOW, "o[1]")]).results == [Result.GONE]
    assert start(board, "a", [2]) == [Result.GONE]
    for key in (board.keys.inflight, board.keys.run, board.keys.spec, board.keys.status):
        assert not board.redis.exists(key)
    assert set(board.redis.hgetall(board.keys.counts).values()) == {"0"}


def test_a_target_added_again_during_its_old_run_is_not_doubled(
    board: Board, leader: Leadership
) -> None:
    """The target is due after the old run has finished."""
    fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(1, enabled=False), NOW)], 2)
    board.place(leader.token, [(spec(1, version=3), NOW)], 3)
    assert_sound(board, [1])
    assert board.finish("a", [Move(1, NOW + 5, "o[1]")], now_ms=NOW).results == [Result.OK]
    assert_sound(board, [1])


def test_a_demanded_target_goes_first_and_one_in_flight_is_left_alone(
    board: Board, leader: Leadership
) -> None:
    """The planned instant of a demanded poll is the instant of the claim."""
    board.place(leader.token, [(spec(1), NOW - 500), (spec(2), NOW + 50_000)], 1)
    assert board.demand([2, 3])[1] == {2: "due", 3: "gone"}
    taken = claim(board, leader, limits=ClaimLimits(targets=1, batch_size=10, lease_ms=30_000))
    assert taken.parts[0].ids == ["2"]
    assert board.demand([2])[1] == {2: "inflight"}
    assert board.start("a", 0, "c", 15_000, [2], NOW).targets[0].plan_ms == NOW
    assert_sound(board, [1, 2])


def test_overdue_targets_are_respread_unless_they_moved_meanwhile(
    board: Board, leader: Leadership
) -> None:
    """A target whose score changed after the read keeps its place."""
    ids = fill(board, leader, 3)
    rows = board.waiting(QUEUE, "-inf", NOW + 1)
    assert rows == [(i, NOW, 60_000) for i in ids]
    board.redis.zadd(board.keys.due(QUEUE), {"2": NOW + 77})
    assert (
        BoardMaintenance(board).respread(
            leader.token, QUEUE, [(i, score, NOW + 1000) for i, score, _ in rows]
        )
        == 2
    )
    assert board.redis.zscore(board.keys.due(QUEUE), "2") == NOW + 77


def test_urgent_targets_go_before_routine_polls_in_every_queue(
    board: Board, leader: Leadership
) -> None:
    """A full list of routine batches does not delay demands and probes."""
    board.place(leader.token, [(spec(i), NOW - i) for i in (1, 2, 3)], 1)
    board.place(leader.token, [(spec(4, queue="poll.z"), NOW)], 2)
    claim(board, leader)
    start(board, "a", [1])
    board.finish("a", [Move(1, NOW - 1, "f[1]", place=Place.URGENT)], now_ms=NOW)
    board.place(leader.token, [(spec(5), NOW - 900)], 3)
    board.demand([4])
    board.redis.lpush(QUEUE + ROUTINE_MARK, *["waiting"] * 100)
    taken = board.claim(leader.token, "b", "a", {QUEUE: 100, "poll.z": 1}, LIMITS, NOW)
    assert [(part.queue, part.urgent, part.ids) for part in taken.parts] == [
        (QUEUE, True, ["1"]),
        ("poll.z", True, ["4"]),
    ]
    board.redis.delete(QUEUE + ROUTINE_MARK)
    taken = board.claim(leader.token, "c", "b", {QUEUE: 100, "poll.z": 1}, LIMITS, NOW)
    assert [(part.urgent, part.ids) for part in taken.parts] == [(False, ["5"])]
    assert_sound(board, [1, 2, 3, 4, 5])


def test_a_demand_goes_before_a_probe_that_waits_longer(board: Board, leader: Leadership) -> None:
    """An operator waits for the result of a demand."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1, 2])
    probe, routine = Move(1, NOW - 60_000, place=Place.URGENT), Move(2, NOW + 60_000)
    board.finish("a", [probe, routine], now_ms=NOW)
    board.demand([2])
    assert board.claim(leader.token, "b", "a", {QUEUE: 9}, LIMITS, NOW).parts[0].ids == ["2", "1"]


def test_a_late_repetition_of_a_start_loses_no_edit(board: Board, leader: Leadership) -> None:
    """The target is edited between the first call and its late repetition."""
    fill(board, leader, 1)
    claim(board, leader)
    board.start("a", 0, "c", 15_000, [1], NOW)
    board.place(leader.token, [(spec(1, version=2, queue="poll.new"), NOW + 9)], 2)
    board.start("a", 0, "c", 15_000, [1], NOW)
    board.finish("a", [Move(1, NOW + 60_000, "o[1]", steady=True)], now_ms=NOW, queue=QUEUE)
    assert board.redis.zscore(board.keys.due("poll.new"), "1") == NOW + 9


def test_a_target_before_its_reconcile_is_pending_not_lost(
    board: Board, leader: Leadership
) -> None:
    """The leader has not placed the newest edits yet."""
    fill(board, leader, 1)
    found = Repair(board).check([spec(1), spec(2, version=5)])
    assert (found.sound, found.pending) == (True, 1)


def test_a_target_edited_in_flight_is_due_at_the_instant_of_place(
    board: Board, leader: Leadership
) -> None:
    """Ten thousand edited targets must not all be due when they finish."""
    fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(1, version=2, interval_ms=10_000), NOW + 7_000)], 2)
    board.finish("a", [Move(1, NOW + 60_000, "o[1]")], now_ms=NOW + 50)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 7_000
    assert board.redis.hlen(board.keys.edited) == 0


def test_leases_survive_a_clock_step(board: Board, leader: Leadership) -> None:
    """After a step forward no lease has run out; after a step back none lasts for an hour."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1])
    for now in (NOW + 3_600_000, NOW):
        assert BoardMaintenance(board).renew_leases(leader.token, now, 30_000, 15_000) == 2
        assert board.reap(leader.token, now_ms=now + 44_999) == []
        assert BoardMaintenance(board).renew_leases(leader.token, now, 30_000, 15_000) == 0
    assert len(board.reap(leader.token, now_ms=NOW + 45_001)) == 2


def test_no_target_waits_longer_after_the_clock_was_set_back(
    board: Board, leader: Leadership
) -> None:
    """Due targets stay on their grid; probes and slow retries stay within their limits."""
    fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", [1, 2, 3])
    moves = [Move(1, NOW + 60_000), Move(2, NOW + 60_000, place=Place.URGENT)]
    board.finish("a", [*moves, Move(3, NOW + 60_000, place=Place.PARKED)], now_ms=NOW)
    before = NOW - 48 * 3_600_000
    assert sum(BoardMaintenance(board).bring_nearer(leader.token, before)) == 3
    score = board.redis.zscore(board.keys.due(QUEUE), "1")
    assert before < score <= before + 60_000
    assert (NOW - score) % 60_000 == 0
    assert board.redis.zscore(board.keys.urgent(QUEUE), "2") <= before + 3_600_000
    assert board.redis.zscore(board.keys.parked, "3") <= before + 24 * 3_600_000
    assert sum(BoardMaintenance(board).bring_nearer(leader.token, before)) == 0


def test_a_poll_that_spans_a_clock_step_is_due_on_time(board: Board, leader: Leadership) -> None:
    """The worker chose the next instant by the old clock; the board adds the step."""
    fill(board, leader, 1)
    for hour in (3_600_000, -3_600_000):
        taken = board.claim(leader.token, f"t{hour}", f"t{-hour}", {QUEUE: 9}, LIMITS, NOW)
        start(board, taken.token, [1])
        move = Move(1, NOW - 5)
        board.finish(taken.token, [move], now_ms=NOW + hour, believed_ms=NOW)
        assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW - 5 + hour
        board.redis.zadd(board.keys.due(QUEUE), {"1": NOW})


def test_a_late_place_call_of_an_old_reconcile_changes_nothing(
    board: Board, leader: Leadership
) -> None:
    """The call was delayed while its retry passed and the target was disabled."""
    board.place(leader.token, [(spec(1), NOW)], 5, since="")
    board.place(leader.token, [(spec(1, version=6, enabled=False), NOW)], 6, since="5")
    with pytest.raises(NotLeader):
        board.place(leader.token, [(spec(1), NOW)], 5, since="")
    assert board.ids() == set()


def plans(client: redis.Redis) -> dict[str, int]:
    """The planned instants of the targets in flight."""
    return {target: int(run.split("|")[1]) for target, run in client.hgetall(Keys().run).items()}


def test_our_own_downtime_is_no_lateness(
    board: Board, leader: Leadership, redis_client: redis.Redis
) -> None:
    """A probe that was due seven minutes ago, while nothing ran, is planned for now.

    So is one that a full queue kept back then. A target that was due later keeps its slot.
    """
    stopped_ms = NOW - 431_000
    board.place(leader.token, [(spec(key), stopped_ms) for key in (1, 2)], 1)
    board.place(leader.token, [(spec(3), NOW + 2_000)], 2)
    board.claim(leader.token, "t0", "", {QUEUE: 0}, LIMITS, stopped_ms - 1_000)
    board.claim(leader.token, "t1", "", {QUEUE: 1}, replace(LIMITS, batch_size=1), NOW)
    assert plans(redis_client) == {"1": NOW}
    board.claim(leader.token, "t2", "t1", {QUEUE: 9}, LIMITS, NOW + 4_000)
    assert plans(redis_client) == {"1": NOW, "2": NOW, "3": NOW + 2_000}


def test_a_failover_is_lateness(
    board: Board, leader: Leadership, redis_client: redis.Redis
) -> None:
    """A few seconds without a claim do not move a plan, and neither does a clock set back."""
    board.place(leader.token, [(spec(1), NOW - 5_000)], 1)
    board.claim(leader.token, "t0", "", {QUEUE: 0}, LIMITS, NOW - 5_500)
    board.claim(leader.token, "t1", "", {QUEUE: 1}, LIMITS, NOW)
    assert plans(redis_client) == {"1": NOW - 5_000}
    redis_client.hset(Keys().board, "resumed", NOW + 3_600_000)
    board.place(leader.token, [(spec(2), NOW)], 2)
    board.claim(leader.token, "t2", "t1", {QUEUE: 1}, LIMITS, NOW + 1_000)
    assert plans(redis_client)["2"] == NOW
