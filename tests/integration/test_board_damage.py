"""Damage of the board by other programs: it stays local, is reported and is repaired."""

from __future__ import annotations

import pytest
import redis

from poller.beat.catch_up import CatchUp
from poller.beat.leadership import Leader
from poller.domain.failures.outcome import Result
from poller.settings import Settings
from poller.state import wrong_types
from poller.state.board.board_repair import Repair, Repaired
from poller.state.board.board_values import Move, Place
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys
from tests.integration.boards import NOW, QUEUE, assert_sound, claim, fill, spec, start


def test_damaged_sums_do_not_stop_a_finish(board: Board, leader: Leadership) -> None:
    """A damaged sum starts again."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    for key, field in (
        (board.keys.counts, "o"),
        (board.keys.totals, "polls"),
        (board.keys.stats(NOW // 10_000), "lmax"),
    ):
        board.redis.hset(key, field, "rubbish")
    moves = [Move(i, NOW + 60_000, "o[1]") for i in ids]
    assert (
        board.finish("a", moves, stats={"polls": 2, "lmax": 5}, now_ms=NOW).results
        == [Result.OK] * 2
    )
    assert_sound(board, ids)
    assert board.redis.hget(board.keys.totals, "polls") == "2"


def test_check_reports_lost_and_doubled_targets(board: Board, leader: Leadership) -> None:
    """Targets in no place are lost, targets in two places are doubled."""
    fill(board, leader, 3)
    board.redis.zrem(board.keys.due(QUEUE), "1")
    board.redis.zadd(board.keys.inflight, {"2": NOW})
    check = board.check([1, 2, 3, 4])
    assert (check.lost, check.doubled) == ([1, 4], [2])


def test_a_damaged_spec_harms_only_its_target(board: Board, leader: Leadership) -> None:
    """The other targets of its batch are polled, and `repair` places it again."""
    ids = fill(board, leader, 3)
    board.redis.hset(board.keys.spec, "2", "rubbish")
    claim(board, leader)
    assert start(board, "a", ids) == [Result.OK, Result.GONE, Result.OK]
    board.finish("a", [Move(i, NOW + 60_000, "o[1]") for i in (1, 3)], now_ms=NOW)
    repair, specs = Repair(board), [spec(i) for i in ids]
    found = repair.check(specs)
    assert (found.lost, found.unreadable, found.sound) == ([2], [2], False)
    assert repair.repair(specs, 1, lambda _: NOW) == Repaired({"unreadable": [2], "lost": [2]})
    assert repair.check(specs).sound


def test_repair_fixes_and_reports_every_kind_of_damage(board: Board, leader: Leadership) -> None:
    """Lost, doubled, in a wrong queue, in flight without a run, stray, and wrong sums."""
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


def test_repair_keeps_later_edits(board: Board, leader: Leadership) -> None:
    """The inventory that repair works from may be a moment old."""
    fill(board, leader, 1)
    old = [spec(1), spec(2, enabled=False)]
    board.place(
        leader.token, [(spec(1, version=2, queue="poll.new"), NOW), (spec(2, version=2), NOW)], 2
    )
    assert Repair(board).repair(old, 1, lambda _: NOW) == Repaired()
    assert board.redis.hget(board.keys.spec, "1") == "2|60000|5000|poll.new"
    assert_sound(board, [1, 2])


def test_repair_does_not_bring_back_a_target_that_was_removed_meanwhile(
    board: Board, leader: Leadership
) -> None:
    """No reconcile would remove it again: the board has the version of the inventory."""
    fill(board, leader, 2)
    seen = [spec(1), spec(2)]
    board.place(leader.token, [(spec(2, version=2, enabled=False), NOW)], 2)
    assert Repair(board).repair(seen, 1, lambda _: NOW) == Repaired()
    assert board.ids() == {1}


def test_an_edit_of_a_failing_target_is_no_demand(board: Board, leader: Leadership) -> None:
    """A probe gets the instant of `place`; a target on demand is still polled at once."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    start(board, "a", ids)
    board.finish("a", [Move(i, NOW + 900_000, "fB[1]", Place.URGENT) for i in ids], now_ms=NOW)
    board.demand([2])
    board.place(
        leader.token, [(spec(i, version=2, interval_ms=30_000), NOW + 7_000) for i in ids], 2
    )
    assert board.redis.zscore(board.keys.urgent(QUEUE), "1") == NOW + 7_000
    assert board.redis.zscore(board.keys.urgent(QUEUE), "2") == 1


@pytest.mark.parametrize("text", ["x", "a|x", "a|x|y|z"])
def test_a_damaged_run_harms_only_its_target(board: Board, leader: Leadership, text: str) -> None:
    """`start` and `reap` serve the other targets of the batch."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    board.redis.hset(board.keys.run, "1", text)
    assert start(board, "a", ids) == [Result.STALE, Result.OK]
    assert {item.id for item in board.reap(leader.token, now_ms=NOW + 99_000)} == set(ids)
    assert_sound(board, ids)


@pytest.mark.parametrize("member", ["abc", "", "5.5", "-3"])
def test_a_member_that_is_no_target_id_leaves_the_board(
    board: Board, leader: Leadership, member: str
) -> None:
    """The claim takes the targets and drops the other member."""
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
def test_a_damaged_outbox_is_dropped(board: Board, leader: Leadership, text: str) -> None:
    """The next claim proceeds; the leases bring back the targets of the lost claim."""
    fill(board, leader, 2)
    board.redis.set(board.keys.outbox, text)
    taken = claim(board, leader)
    assert (taken.repeated, taken.targets) == (False, 2)


def test_a_damaged_edit_record_does_not_stop_a_finish(board: Board, leader: Leadership) -> None:
    """All targets of the batch reach one place."""
    ids = fill(board, leader, 3)
    claim(board, leader)
    start(board, "a", ids)
    board.place(leader.token, [(spec(1, version=2, interval_ms=9_000), NOW)], 2)
    board.redis.hset(board.keys.edited, "1", "rubbish")
    board.finish("a", [Move(i, NOW + 60_000, "o[1]") for i in ids], now_ms=NOW)
    assert_sound(board, ids)


@pytest.mark.parametrize(
    ("score", "text"), [("-inf", "1|60000|5000|poll.snmp"), (NOW - 99_000, "rubbish")]
)
def test_damage_does_not_stop_a_new_leader(
    board: Board, leader: Leadership, score: float | str, text: str
) -> None:
    """An overdue target has an impossible instant or a damaged spec."""
    fill(board, leader, 2)
    board.redis.zadd(board.keys.due(QUEUE), {"1": score})
    board.redis.hset(board.keys.spec, "1", text)
    catch_up = CatchUp(board, Leader(leader, 1.0), Settings())
    assert catch_up.spread([QUEUE], NOW + 60_000) >= 1


@pytest.mark.parametrize("field", ["epoch", "leader"])
def test_a_damaged_epoch_does_not_stop_an_election(redis_client: redis.Redis, field: str) -> None:
    """The epoch starts again, and the process with the lock leads."""
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


@pytest.mark.parametrize(
    "name", ["due:poll.snmp", "inflight", "queues", "spec", "run", "board", "outbox", "leader"]
)
def test_a_key_of_another_type_is_set_aside(board: Board, leader: Leadership, name: str) -> None:
    """A key of another type would stop every script; its content comes back from SQL."""
    fill(board, leader, 2)
    key = board.keys.prefix + name
    board.redis.delete(key)
    board.redis.rpush(key, "of another program")
    assert wrong_types.set_aside(board.redis, board.keys, "damaged") == [key]
    assert board.redis.lrange(f"{key}.damaged", 0, -1) == ["of another program"]
    assert wrong_types.set_aside(board.redis, board.keys, "damaged") == []
