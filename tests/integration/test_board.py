"""The board on a real server: a target is in exactly one place, whatever happens to messages and leaders."""

from __future__ import annotations

import pytest
import redis

from poller.beat import resume
from poller.domain.outcome import Result
from poller.domain.overview import State
from poller.domain.target import TargetSpec
from poller.state import types
from poller.state.board import ROUTINE_MARK, Board, NotLeader
from poller.state.keys import Keys
from poller.state.leader import Leadership
from poller.state.moves import Claim, Finish, Place, Room
from poller.state.repair import Repair, Repaired

QUEUE = "poll.snmp"
ROOM = Room(targets=1000, batch_size=10, lease_ms=30_000)
NOW = 1_800_000_000_000


@pytest.fixture
def board(redis_client: redis.Redis) -> Board:
    return Board(redis_client, Keys())


@pytest.fixture
def leader(redis_client: redis.Redis) -> Leadership:
    leadership = Leadership(redis_client, Keys(), 60_000)
    leadership.take()
    return leadership


def spec(
    target_id: int, version: int = 1, queue: str = QUEUE, interval_ms: int = 60_000, enabled: bool = True
) -> TargetSpec:
    return TargetSpec(target_id, version, queue, interval_ms, 5_000, enabled)


def fill(board: Board, leader: Leadership, count: int = 5) -> list[int]:
    board.place(leader.token, [(spec(i), NOW) for i in range(1, count + 1)], 1)
    return list(range(1, count + 1))


def claim(
    board: Board, leader: Leadership, token: str = "a", published: str = "", room: Room = ROOM, waiting: int = 100
) -> Claim:
    return board.claim(leader.token, token, published, {QUEUE: waiting}, room, NOW)


def start(board: Board, token: str, ids: list[int], attempt: int = 0, call: str = "c") -> list[Result]:
    return [answer.result for answer in board.start(token, attempt, call, 15_000, ids, NOW).answers]


def assert_sound(board: Board, ids: list[int]) -> None:
    check = board.check(ids)
    assert (check.lost, check.doubled) == ([], [])


def test_a_claim_moves_due_targets_in_flight(board: Board, leader: Leadership) -> None:
    """Only what is due, with its queue."""
    ids = fill(board, leader)
    board.place(leader.token, [(spec(99), NOW + 1)], 2)
    taken = claim(board, leader)
    assert [int(i) for i in taken.parts[0].ids] == ids
    assert not taken.again
    assert_sound(board, [*ids, 99])
    assert claim(board, leader, "b", "a").token == ""


def test_a_claim_that_was_not_published_comes_back_as_it_was(board: Board, leader: Leadership) -> None:
    """A lost reply, a kill or a new leader in between strands nothing."""
    ids = fill(board, leader)
    first = claim(board, leader, "a")
    again = claim(board, leader, "b")
    assert (again.token, again.again, again.parts) == ("a", True, first.parts)
    assert claim(board, leader, "c", published="a").token == ""
    assert_sound(board, ids)


def test_a_run_starts_once(board: Board, leader: Leadership) -> None:
    """A second delivery is a duplicate; the same call repeated after a lost answer is not."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    assert start(board, "a", ids, call="one") == [Result.OK]
    assert start(board, "a", ids, call="one") == [Result.OK]
    assert start(board, "a", ids, call="two") == [Result.DUPLICATE]
    assert start(board, "a", ids, attempt=1, call="three") == [Result.OK]


def test_a_message_of_an_older_claim_is_stale(board: Board, leader: Leadership) -> None:
    """What a paused leader publishes late is refused."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    board.reap(leader.token, now_ms=NOW + 60_000)
    assert start(board, "a", ids) == [Result.STALE]
    board.claim(leader.token, "b", "a", {QUEUE: 100}, ROOM, NOW + 60_000)
    assert start(board, "a", ids) == [Result.STALE]
    assert start(board, "b", ids) == [Result.OK]


def test_finish_puts_a_target_at_its_next_slot_with_its_status(board: Board, leader: Leadership) -> None:
    """And the counts by state follow."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    moves = [
        Finish(1, NOW + 60_000, "o[1]"),
        Finish(2, NOW + 60_000, "f[1]"),
        Finish(3, NOW + 9, "f[1]", place=Place.PARKED),
    ]
    assert board.finish("a", moves, {"polls": 3, "lmax": 7}, ["e1"], NOW) == [Result.OK] * 3
    assert_sound(board, ids)
    counts = board.redis.hgetall(board.keys.counts)
    assert counts == {"u": "0", "o": "1", "f": "2"}
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 60_000
    assert board.redis.zscore(board.keys.parked, "3") == NOW + 9
    assert board.statuses([1])[1].state is State.OK


def test_a_steady_target_is_not_looked_at_closely_unless_it_was_edited(board: Board, leader: Leadership) -> None:
    """It goes to its next slot in the queue it came from; edited in flight, to the new one, when `place` said."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    moves = [Finish(i, NOW + 60_000, "o[1]", steady=True) for i in ids]
    board.finish("a", moves[:1], now_ms=NOW, queue=QUEUE)
    board.place(leader.token, [(spec(2, version=2, queue="poll.new"), NOW + 9), (spec(3, enabled=False), NOW)], 2)
    assert board.finish("a", moves[1:], now_ms=NOW, queue=QUEUE) == [Result.OK, Result.GONE]
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 60_000
    assert board.redis.zscore(board.keys.due("poll.new"), "2") == NOW + 9
    assert not board.redis.exists(board.keys.inflight, board.keys.run, board.keys.edited)
    assert_sound(board, [1, 2])


def test_what_is_finished_twice_is_counted_once(board: Board, leader: Leadership) -> None:
    """The answer got lost and the worker asks again."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", ids)
    for expected in (Result.OK, Result.STALE):
        assert board.finish("a", [Finish(1, NOW + 60_000, "o[1]")], {"polls": 1}, ["e"], NOW) == [expected]
    assert board.redis.hget(board.keys.totals, "polls") == "1"
    assert board.redis.llen(board.keys.errors) == 1


def test_a_run_without_a_plan_was_planned_for_now(board: Board, leader: Leadership) -> None:
    """Whoever spoiled it: its batch is polled."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    board.redis.hset(board.keys.run, "1", "a|rubbish|0|")
    found = board.start("a", 0, "c", 15_000, ids, NOW + 5).answers
    assert [(answer.result, answer.plan_ms) for answer in found] == [(Result.OK, NOW + 5), (Result.OK, NOW)]


def test_sums_that_somebody_spoiled_keep_nobody_from_landing(board: Board, leader: Leadership) -> None:
    """They start anew."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    for key, field in (
        (board.keys.counts, "o"),
        (board.keys.totals, "polls"),
        (board.keys.stats(NOW // 10_000), "lmax"),
    ):
        board.redis.hset(key, field, "rubbish")
    moves = [Finish(i, NOW + 60_000, "o[1]") for i in ids]
    assert board.finish("a", moves, {"polls": 2, "lmax": 5}, now_ms=NOW) == [Result.OK] * 2
    assert_sound(board, ids)
    assert board.redis.hget(board.keys.totals, "polls") == "2"


def test_a_late_writer_is_refused(board: Board, leader: Leadership) -> None:
    """Its lease was taken over: the new run is not disturbed."""
    ids = fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", ids)
    assert [item.id for item in board.reap(leader.token, now_ms=NOW + 60_000)] == ids
    board.claim(leader.token, "b", "a", {QUEUE: 100}, ROOM, NOW + 60_000)
    assert board.finish("a", [Finish(1, NOW, "o[1]")]) == [Result.STALE]
    assert_sound(board, ids)
    assert start(board, "b", ids) == [Result.OK]


def test_holding_prolongs_a_lease_that_is_still_ours(board: Board, leader: Leadership) -> None:
    """And never shortens it; what somebody else took over is not held."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    assert board.hold("a", 60_000, ids, NOW) == {1: Result.OK, 2: Result.OK}
    assert board.redis.zscore(board.keys.inflight, "1") == NOW + 60_000
    assert board.hold("a", 1_000, ids, NOW)[1] is Result.OK
    assert board.redis.zscore(board.keys.inflight, "1") == NOW + 60_000
    assert set(board.hold("b", 60_000, ids, NOW).values()) == {Result.STALE}
    board.finish("a", [Finish(1, NOW)])
    assert board.hold("a", 60_000, ids, NOW)[2] is Result.OK


def test_only_the_leader_moves_targets(board: Board, leader: Leadership) -> None:
    """An ex-leader with an old token can do nothing at all."""
    fill(board, leader)
    for act in (
        lambda: board.claim("old", "a", "", {QUEUE: 100}, ROOM, NOW),
        lambda: board.reap("old"),
        lambda: board.place("old", [(spec(1), NOW)], 9),
        lambda: board.respread("old", QUEUE, [(1, NOW, NOW + 5)]),
    ):
        with pytest.raises(NotLeader):
            act()
    assert board.version() == 1


def test_back_pressure_leaves_the_rest_on_the_board(board: Board, leader: Leadership) -> None:
    """Never more than `max_queue` batches wait; oldest first, nothing is lost."""
    ids = fill(board, leader, 50)
    board.redis.lpush(QUEUE + ROUTINE_MARK, "waiting batch")
    taken = claim(board, leader, waiting=3)
    assert len(taken.parts[0].ids) == 20
    assert_sound(board, ids)


def test_edits_reach_waiting_flying_and_parked_targets(board: Board, leader: Leadership) -> None:
    """Waiting: at once. In flight: when it finishes. Parked: back to due, somebody may have mended it."""
    fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", [1, 2, 3])
    board.finish(
        "a", [Finish(2, NOW + 60_000, "o[1]"), Finish(3, NOW + 60_000, "f[1]", place=Place.PARKED)], now_ms=NOW
    )
    board.place(leader.token, [(spec(i, version=2, interval_ms=10_000), NOW + 10_000) for i in (1, 2, 3)], 2)
    assert board.redis.zscore(board.keys.due(QUEUE), "2") == NOW + 10_000
    assert board.redis.zscore(board.keys.due(QUEUE), "3") == NOW + 10_000
    board.finish("a", [Finish(1, NOW + 60_000, "o[1]")], now_ms=NOW + 50)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 10_000
    assert_sound(board, [1, 2, 3])


def test_an_edit_that_does_not_touch_the_schedule_keeps_the_slot(board: Board, leader: Leadership) -> None:
    """A renamed device is not polled out of turn."""
    fill(board, leader, 1)
    board.place(leader.token, [(spec(1, version=2), NOW + 99_999)], 2)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW


def test_a_changed_queue_moves_the_target(board: Board, leader: Leadership) -> None:
    """It is never due in two queues."""
    fill(board, leader, 1)
    board.place(leader.token, [(spec(1, version=2, queue="poll.snmp;zone=dmz"), NOW)], 2)
    assert_sound(board, [1])
    assert board.redis.zscore(board.keys.due("poll.snmp;zone=dmz"), "1") == NOW


def test_a_target_removed_in_flight_is_gone_when_it_finishes(board: Board, leader: Leadership) -> None:
    """Its late result is dropped and nothing of it stays."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(i, enabled=False), NOW) for i in (1, 2)], 2)
    assert board.finish("a", [Finish(1, NOW, "o[1]")]) == [Result.GONE]
    assert start(board, "a", [2]) == [Result.GONE]
    for key in (board.keys.inflight, board.keys.run, board.keys.spec, board.keys.status):
        assert not board.redis.exists(key)
    assert set(board.redis.hgetall(board.keys.counts).values()) == {"0"}


def test_a_target_that_comes_back_while_its_old_run_flies_is_not_doubled(board: Board, leader: Leadership) -> None:
    """Removed and added again under one run: due once it has landed."""
    fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(1, enabled=False), NOW)], 2)
    board.place(leader.token, [(spec(1, version=3), NOW)], 3)
    assert_sound(board, [1])
    assert board.finish("a", [Finish(1, NOW + 5, "o[1]")], now_ms=NOW) == [Result.OK]
    assert_sound(board, [1])


def test_a_demanded_target_goes_first_and_one_in_flight_is_left_alone(board: Board, leader: Leadership) -> None:
    """Its plan time is the moment of the claim, not the dawn of time."""
    board.place(leader.token, [(spec(1), NOW - 500), (spec(2), NOW + 50_000)], 1)
    assert board.demand([2, 3])[1] == {2: "due", 3: "gone"}
    taken = claim(board, leader, room=Room(targets=1, batch_size=10, lease_ms=30_000))
    assert taken.parts[0].ids == ["2"]
    assert board.demand([2])[1] == {2: "inflight"}
    assert board.start("a", 0, "c", 15_000, [2], NOW).answers[0].plan_ms == NOW
    assert_sound(board, [1, 2])


def test_the_long_overdue_are_spread_unless_they_moved_meanwhile(board: Board, leader: Leadership) -> None:
    """A target that was claimed between look and move is let be."""
    ids = fill(board, leader, 3)
    rows = board.waiting(QUEUE, "-inf", NOW + 1)
    assert rows == [(i, NOW, 60_000) for i in ids]
    board.redis.zadd(board.keys.due(QUEUE), {"2": NOW + 77})
    assert board.respread(leader.token, QUEUE, [(i, score, NOW + 1000) for i, score, _ in rows]) == 2
    assert board.redis.zscore(board.keys.due(QUEUE), "2") == NOW + 77


def test_check_finds_what_is_lost_or_doubled(board: Board, leader: Leadership) -> None:
    """The check itself can fail."""
    fill(board, leader, 3)
    board.redis.zrem(board.keys.due(QUEUE), "1")
    board.redis.zadd(board.keys.inflight, {"2": NOW})
    check = board.check([1, 2, 3, 4])
    assert (check.lost, check.doubled) == ([1, 4], [2])


def test_one_leader_at_a_time_and_a_clean_hand_over(redis_client: redis.Redis) -> None:
    """Each new leader has a higher epoch; renewal never takes what is not ours."""
    one, two = (Leadership(redis_client, Keys(), 60_000) for _ in range(2))
    assert one.take() == (1, True)
    assert one.take() == (1, False)  # a late answer to our own request is adopted, not feared
    assert two.take() == (0, False)
    assert not two.renew()
    assert one.renew()
    assert one.resign()
    assert not one.renew()
    assert two.take() == (2, True)
    assert not one.resign()


def test_what_is_urgent_overtakes_routine_polls_everywhere(board: Board, leader: Leadership) -> None:
    """Asked for before probes before routine, in every queue; a full queue of routine polls is no obstacle."""
    board.place(leader.token, [(spec(i), NOW - i) for i in (1, 2, 3)], 1)
    board.place(leader.token, [(spec(4, queue="poll.z"), NOW)], 2)
    claim(board, leader)
    start(board, "a", [1])
    board.finish("a", [Finish(1, NOW - 1, "f[1]", place=Place.URGENT)], now_ms=NOW)
    board.place(leader.token, [(spec(5), NOW - 900)], 3)
    board.demand([4])
    board.redis.lpush(QUEUE + ROUTINE_MARK, *["waiting"] * 100)
    taken = board.claim(leader.token, "b", "a", {QUEUE: 100, "poll.z": 1}, ROOM, NOW)
    assert [(part.queue, part.urgent, part.ids) for part in taken.parts] == [
        (QUEUE, True, ["1"]),
        ("poll.z", True, ["4"]),
    ]
    board.redis.delete(QUEUE + ROUTINE_MARK)
    taken = board.claim(leader.token, "c", "b", {QUEUE: 100, "poll.z": 1}, ROOM, NOW)
    assert [(part.urgent, part.ids) for part in taken.parts] == [(False, ["5"])]
    assert_sound(board, [1, 2, 3, 4, 5])


def test_a_demand_goes_before_a_probe_that_waits_longer(board: Board, leader: Leadership) -> None:
    """Somebody sits in front of a terminal."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1, 2])
    probe, routine = Finish(1, NOW - 60_000, place=Place.URGENT), Finish(2, NOW + 60_000)
    board.finish("a", [probe, routine], now_ms=NOW)
    board.demand([2])
    assert board.claim(leader.token, "b", "a", {QUEUE: 9}, ROOM, NOW).parts[0].ids == ["2", "1"]


def test_a_spec_that_nobody_can_read_harms_only_itself(board: Board, leader: Leadership) -> None:
    """Whatever damaged it: the others of its batch are polled, and `repair` brings it back."""
    ids = fill(board, leader, 3)
    board.redis.hset(board.keys.spec, "2", "rubbish")
    claim(board, leader)
    assert start(board, "a", ids) == [Result.OK, Result.GONE, Result.OK]
    board.finish("a", [Finish(i, NOW + 60_000, "o[1]") for i in (1, 3)], now_ms=NOW)
    repair, specs = Repair(board), [spec(i) for i in ids]
    found = repair.check(specs)
    assert (found.lost, found.unreadable, found.sound) == ([2], [2], False)
    assert repair.repair(specs, 1, lambda _: NOW) == Repaired({"unreadable": [2], "lost": [2]})
    assert repair.check(specs).sound


def test_repair_mends_every_kind_of_damage_and_says_so(board: Board, leader: Leadership) -> None:
    """Lost, doubled, in the wrong queue, in flight without a run, unknown to the inventory, sums that are off."""
    fill(board, leader, 6)
    redis, keys = board.redis, board.keys
    redis.zrem(keys.due(QUEUE), "1")
    redis.zadd(keys.parked, {"2": NOW})
    redis.zrem(keys.due(QUEUE), "3")
    redis.sadd(keys.queues, "poll.other")
    redis.zadd(keys.due("poll.other"), {"3": NOW, "77": NOW})
    redis.zrem(keys.due(QUEUE), "4")
    redis.zadd(keys.inflight, {"4": NOW + 99_000})
    redis.hset(keys.spec, "88", "1|1000|5|poll.snmp")
    redis.hset(keys.counts, "u", 17)
    repair, specs = Repair(board), [spec(i) for i in range(1, 7)]
    found = repair.check(specs)
    assert (found.lost, found.doubled, found.strays) == ([1], [2], [77, 88])
    fixed = repair.repair(specs, 1, lambda _: NOW)
    assert fixed.sums
    assert fixed.targets == {"lost": [1, 4], "doubled": [2], "misplaced": [3], "stray": [77, 88]}
    assert repair.check(specs).sound
    assert_sound(board, [1, 2, 3, 4, 5, 6])
    assert repair.repair(specs, 1, lambda _: NOW) == Repaired()


def test_repair_leaves_alone_what_was_edited_meanwhile(board: Board, leader: Leadership) -> None:
    """It works from a look at the inventory that may be a moment old."""
    fill(board, leader, 1)
    old = [spec(1), spec(2, enabled=False)]
    board.place(leader.token, [(spec(1, version=2, queue="poll.new"), NOW), (spec(2, version=2), NOW)], 2)
    assert Repair(board).repair(old, 1, lambda _: NOW) == Repaired()
    assert board.redis.hget(board.keys.spec, "1") == "2|60000|5000|poll.new"
    assert_sound(board, [1, 2])


def test_repair_brings_back_nobody_who_was_removed_meanwhile(board: Board, leader: Leadership) -> None:
    """It would be polled for ever: the board is at the inventory's version, so nobody would look again."""
    fill(board, leader, 2)
    seen = [spec(1), spec(2)]
    board.place(leader.token, [(spec(2, version=2, enabled=False), NOW)], 2)
    assert Repair(board).repair(seen, 1, lambda _: NOW) == Repaired()
    assert board.ids() == {1}


def test_an_edit_of_a_broken_target_does_not_make_it_asked_for(board: Board, leader: Leadership) -> None:
    """A thousand of them would all be polled at once; one that a person did ask for still is."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    board.finish("a", [Finish(i, NOW + 900_000, "fB[1]", Place.URGENT) for i in ids], now_ms=NOW)
    board.demand([2])
    board.place(leader.token, [(spec(i, version=2, interval_ms=30_000), NOW + 7_000) for i in ids], 2)
    assert board.redis.zscore(board.keys.urgent(QUEUE), "1") == NOW + 7_000
    assert board.redis.zscore(board.keys.urgent(QUEUE), "2") == 1


def test_a_start_that_is_said_again_late_loses_no_edit(board: Board, leader: Leadership) -> None:
    """The first packet comes after the second was answered and the target was edited."""
    fill(board, leader, 1)
    claim(board, leader)
    board.start("a", 0, "c", 15_000, [1], NOW)
    board.place(leader.token, [(spec(1, version=2, queue="poll.new"), NOW + 9)], 2)
    board.start("a", 0, "c", 15_000, [1], NOW)
    board.finish("a", [Finish(1, NOW + 60_000, "o[1]", steady=True)], now_ms=NOW, queue=QUEUE)
    assert board.redis.zscore(board.keys.due("poll.new"), "1") == NOW + 9


@pytest.mark.parametrize("text", ["x", "a|x", "a|x|y|z"])
def test_a_run_that_nobody_can_read_harms_no_other(board: Board, leader: Leadership, text: str) -> None:
    """Not at the start of its batch, nor when its lease ran out."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    board.redis.hset(board.keys.run, "1", text)
    assert start(board, "a", ids) == [Result.STALE, Result.OK]
    assert {item.id for item in board.reap(leader.token, now_ms=NOW + 99_000)} == set(ids)
    assert_sound(board, ids)


def test_what_waits_for_its_reconcile_is_pending_not_lost(board: Board, leader: Leadership) -> None:
    """The leader has not seen the newest edits yet."""
    fill(board, leader, 1)
    found = Repair(board).check([spec(1), spec(2, version=5)])
    assert (found.sound, found.pending) == (True, 1)


def test_an_edit_in_flight_falls_due_when_reconcile_said(board: Board, leader: Leadership) -> None:
    """Ten thousand edited at once must not all be due the moment they land."""
    fill(board, leader, 1)
    claim(board, leader)
    start(board, "a", [1])
    board.place(leader.token, [(spec(1, version=2, interval_ms=10_000), NOW + 7_000)], 2)
    board.finish("a", [Finish(1, NOW + 60_000, "o[1]")], now_ms=NOW + 50)
    assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW + 7_000
    assert board.redis.hlen(board.keys.edited) == 0


def test_leases_survive_a_step_of_the_clock(board: Board, leader: Leadership) -> None:
    """Forward they seem to have run out, backward they seem to last for an hour: neither is believed."""
    fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", [1])
    for now in (NOW + 3_600_000, NOW):
        assert board.renew_leases(leader.token, now, 30_000, 15_000) == 2
        assert board.reap(leader.token, now_ms=now + 44_999) == []
        assert board.renew_leases(leader.token, now, 30_000, 15_000) == 0
    assert len(board.reap(leader.token, now_ms=NOW + 45_001)) == 2


def test_a_clock_set_back_makes_nobody_wait_for_an_hour(board: Board, leader: Leadership) -> None:
    """Every target comes back to the next slot of its own grid; probes and slow retries within their limits."""
    fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", [1, 2, 3])
    moves = [Finish(1, NOW + 60_000), Finish(2, NOW + 60_000, place=Place.URGENT)]
    board.finish("a", [*moves, Finish(3, NOW + 60_000, place=Place.PARKED)], now_ms=NOW)
    before = NOW - 48 * 3_600_000
    assert board.bring_nearer(leader.token, before, lambda: None) == 3
    score = board.redis.zscore(board.keys.due(QUEUE), "1")
    assert before < score <= before + 60_000
    assert (NOW - score) % 60_000 == 0
    assert board.redis.zscore(board.keys.urgent(QUEUE), "2") <= before + 3_600_000
    assert board.redis.zscore(board.keys.parked, "3") <= before + 24 * 3_600_000
    assert board.bring_nearer(leader.token, before, lambda: None) == 0


def test_a_lock_that_outlives_its_holder_is_taken_over(redis_client: redis.Redis) -> None:
    """The clock was set back by an hour and the leader died: its lock would stand for an hour and four seconds."""
    gone, heir = (Leadership(redis_client, Keys(), 4_000) for _ in range(2))
    gone.take()
    assert heir.take() == (0, False)
    redis_client.pexpire(Keys().lock, 3_604_000)
    assert not heir.renew()
    assert heir.take() == (2, True)
    assert not gone.renew()


def test_a_lock_without_an_end_is_taken_over(redis_client: redis.Redis) -> None:
    """No poller makes one: whoever did, it would stop everybody for ever."""
    redis_client.set(Keys().lock, "somebody")
    assert Leadership(redis_client, Keys(), 4_000).take() == (1, True)


def test_a_lock_that_is_not_a_pollers_is_respected(redis_client: redis.Redis) -> None:
    """Whoever took it, for as long as they like."""
    ours = Leadership(redis_client, Keys(), 4_000)
    ours.take()
    redis_client.set(Keys().lock, "somebody else", px=3_600_000)
    assert ours.take() == (0, False)


def test_a_poll_that_spans_a_step_of_the_clock_comes_back_on_time(board: Board, leader: Leadership) -> None:
    """Its worker chose the next instant by the clock of the start; an hour more or less is not believed."""
    fill(board, leader, 1)
    for hour in (3_600_000, -3_600_000):
        taken = board.claim(leader.token, f"t{hour}", f"t{-hour}", {QUEUE: 9}, ROOM, NOW)
        start(board, taken.token, [1])
        move = Finish(1, NOW - 5)
        board.finish(taken.token, [move], now_ms=NOW + hour, believed_ms=NOW)
        assert board.redis.zscore(board.keys.due(QUEUE), "1") == NOW - 5 + hour
        board.redis.zadd(board.keys.due(QUEUE), {"1": NOW})


@pytest.mark.parametrize("member", ["abc", "", "5.5", "-3"])
def test_what_is_no_targets_number_leaves_the_board(board: Board, leader: Leadership, member: str) -> None:
    """Whoever wrote it: the claim takes the others, and the stranger is gone."""
    ids = fill(board, leader, 2)
    board.redis.zadd(board.keys.due(QUEUE), {member: NOW - 99})
    taken = claim(board, leader)
    assert [int(i) for i in taken.parts[0].ids] == ids
    assert board.redis.zcard(board.keys.due(QUEUE)) == 0


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "7",
        "{}",
        "[]",
        '["1","",0]',
        '["1","t",0,"poll.snmp"]',
        '["1","t",0,1,1,1]',
        '["1","t",0,"q",null,["1"]]',
        '["1","t",0,"q",0,[null]]',
    ],
)
def test_an_outbox_that_nobody_can_read_is_dropped(board: Board, leader: Leadership, text: str) -> None:
    """The leases of what it held bring that back; polling goes on."""
    fill(board, leader, 2)
    board.redis.set(board.keys.outbox, text)
    taken = claim(board, leader)
    assert (taken.again, taken.targets) == (False, 2)


def test_a_late_packet_of_an_old_reconcile_changes_nothing(board: Board, leader: Leadership) -> None:
    """It was stuck on its way while a retry passed, and the target was disabled since."""
    board.place(leader.token, [(spec(1), NOW)], 5, since="")
    board.place(leader.token, [(spec(1, version=6, enabled=False), NOW)], 6, since="5")
    with pytest.raises(NotLeader):
        board.place(leader.token, [(spec(1), NOW)], 5, since="")
    assert board.ids() == set()


def test_garbage_in_one_targets_edit_harms_nobody(board: Board, leader: Leadership) -> None:
    """All of its batch land where they should."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    board.place(leader.token, [(spec(1, version=2, interval_ms=9_000), NOW)], 2)
    board.redis.hset(board.keys.edited, "1", "rubbish")
    board.finish("a", [Finish(i, NOW + 60_000, "o[1]") for i in ids], now_ms=NOW)
    assert_sound(board, ids)


@pytest.mark.parametrize(("score", "text"), [("-inf", "1|60000|5000|poll.snmp"), (NOW - 99_000, "rubbish")])
def test_damage_does_not_keep_a_leader_from_beginning(
    board: Board, leader: Leadership, score: float | str, text: str
) -> None:
    """An overdue target with an impossible instant or a spec that nobody can read."""
    fill(board, leader, 2)
    board.redis.zadd(board.keys.due(QUEUE), {"1": score})
    board.redis.hset(board.keys.spec, "1", text)
    assert resume.spread(board, leader.token, NOW + 60_000, [QUEUE]) >= 1


@pytest.mark.parametrize("field", ["epoch", "leader"])
def test_a_damaged_epoch_keeps_nobody_from_leading(redis_client: redis.Redis, field: str) -> None:
    """It starts anew, and whoever holds the lock knows it."""
    keys, one = Keys(), Leadership(redis_client, Keys(), 60_000)
    one.take()
    if field == "leader":
        redis_client.hset(keys.leader, "epoch", "abc")
        assert one.take()[0] > 0
    else:
        redis_client.delete(keys.lock, keys.leader)
        redis_client.set(keys.epoch, "abc")
        assert one.take() == (1, True)
    assert redis_client.get(keys.lock) == one.token


@pytest.mark.parametrize("name", ["due:poll.snmp", "inflight", "queues", "spec", "run", "board", "outbox", "leader"])
def test_a_key_of_another_type_is_set_aside(board: Board, leader: Leadership, name: str) -> None:
    """It would stop every script for ever; what it held comes back from SQL."""
    fill(board, leader, 2)
    key = board.keys.prefix + name
    board.redis.delete(key)
    board.redis.rpush(key, "somebody else's")
    assert types.set_aside(board.redis, board.keys, "damaged") == [key]
    assert board.redis.lrange(f"{key}.damaged", 0, -1) == ["somebody else's"]
    assert types.set_aside(board.redis, board.keys, "damaged") == []
