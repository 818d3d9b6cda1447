"""What somebody spoiled on the board harms only itself, is found, and is mended."""

from __future__ import annotations

import pytest
import redis

from poller.beat.catch_up import CatchUp
from poller.beat.leadership import Leader
from poller.domain.failures.outcome import Result
from poller.settings import Settings
from poller.state.board import wrong_types
from poller.state.board.board_repair import Repair, Repaired
from poller.state.board.board_values import Move, Place
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.keys import Keys
from tests.integration.boards import NOW, QUEUE, assert_sound, claim, fill, spec, start


def test_sums_that_somebody_spoiled_keep_nobody_from_landing(
    board: Board, leader: Leadership
) -> None:
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
    moves = [Move(i, NOW + 60_000, "o[1]") for i in ids]
    assert board.finish("a", moves, stats={"polls": 2, "lmax": 5}, now_ms=NOW) == [Result.OK] * 2
    assert_sound(board, ids)
    assert board.redis.hget(board.keys.totals, "polls") == "2"


def test_check_finds_what_is_lost_or_doubled(board: Board, leader: Leadership) -> None:
    """The check itself can fail."""
    fill(board, leader, 3)
    board.redis.zrem(board.keys.due(QUEUE), "1")
    board.redis.zadd(board.keys.inflight, {"2": NOW})
    check = board.check([1, 2, 3, 4])
    assert (check.lost, check.doubled) == ([1, 4], [2])


def test_a_spec_that_nobody_can_read_harms_only_itself(board: Board, leader: Leadership) -> None:
    """Whatever damaged it: the others of its batch are polled, and `repair` brings it back."""
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
    board.place(
        leader.token, [(spec(1, version=2, queue="poll.new"), NOW), (spec(2, version=2), NOW)], 2
    )
    assert Repair(board).repair(old, 1, lambda _: NOW) == Repaired()
    assert board.redis.hget(board.keys.spec, "1") == "2|60000|5000|poll.new"
    assert_sound(board, [1, 2])


def test_repair_brings_back_nobody_who_was_removed_meanwhile(
    board: Board, leader: Leadership
) -> None:
    """It would be polled for ever: the board is at the inventory's version, so nobody would look again."""
    fill(board, leader, 2)
    seen = [spec(1), spec(2)]
    board.place(leader.token, [(spec(2, version=2, enabled=False), NOW)], 2)
    assert Repair(board).repair(seen, 1, lambda _: NOW) == Repaired()
    assert board.ids() == {1}


def test_an_edit_of_a_broken_target_does_not_make_it_asked_for(
    board: Board, leader: Leadership
) -> None:
    """A thousand of them would all be polled at once; one that a person did ask for still is."""
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
def test_a_run_that_nobody_can_read_harms_no_other(
    board: Board, leader: Leadership, text: str
) -> None:
    """Not at the start of its batch, nor when its lease ran out."""
    ids = fill(board, leader, 2)
    claim(board, leader)
    board.redis.hset(board.keys.run, "1", text)
    assert start(board, "a", ids) == [Result.STALE, Result.OK]
    assert {item.id for item in board.reap(leader.token, now_ms=NOW + 99_000)} == set(ids)
    assert_sound(board, ids)


@pytest.mark.parametrize("member", ["abc", "", "5.5", "-3"])
def test_what_is_no_targets_number_leaves_the_board(
    board: Board, leader: Leadership, member: str
) -> None:
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
def test_an_outbox_that_nobody_can_read_is_dropped(
    board: Board, leader: Leadership, text: str
) -> None:
    """The leases of what it held bring that back; polling goes on."""
    fill(board, leader, 2)
    board.redis.set(board.keys.outbox, text)
    taken = claim(board, leader)
    assert (taken.repeated, taken.targets) == (False, 2)


def test_garbage_in_one_targets_edit_harms_nobody(board: Board, leader: Leadership) -> None:
    """All of its batch land where they should."""
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
def test_damage_does_not_keep_a_leader_from_beginning(
    board: Board, leader: Leadership, score: float | str, text: str
) -> None:
    """An overdue target with an impossible instant or a spec that nobody can read."""
    fill(board, leader, 2)
    board.redis.zadd(board.keys.due(QUEUE), {"1": score})
    board.redis.hset(board.keys.spec, "1", text)
    catch_up = CatchUp(board, Leader(leader, 1.0), Settings())
    assert catch_up.spread([QUEUE], NOW + 60_000) >= 1


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


@pytest.mark.parametrize(
    "name", ["due:poll.snmp", "inflight", "queues", "spec", "run", "board", "outbox", "leader"]
)
def test_a_key_of_another_type_is_set_aside(board: Board, leader: Leadership, name: str) -> None:
    """It would stop every script for ever; what it held comes back from SQL."""
    fill(board, leader, 2)
    key = board.keys.prefix + name
    board.redis.delete(key)
    board.redis.rpush(key, "somebody else's")
    assert wrong_types.set_aside(board.redis, board.keys, "damaged") == [key]
    assert board.redis.lrange(f"{key}.damaged", 0, -1) == ["somebody else's"]
    assert wrong_types.set_aside(board.redis, board.keys, "damaged") == []
