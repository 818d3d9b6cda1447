"""The leader's housekeeping, which travels with the other commands of a round."""

from __future__ import annotations

import pytest

from poller import errors
from poller.state.board.board_values import ClaimLimits, NotLeader
from poller.state.board.housekeeping import Housekeeping
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from poller.state.cluster.round_survey import Survey, Surveyor
from tests.integration.boards import QUEUE, assert_sound, spec

LIMITS = ClaimLimits(targets=100, batch_size=10, lease_ms=30_000)
STEP_MS = 5_000
HOUR_MS = 3_600_000


def survey(board: Board, leader: str, now_ms: int) -> Survey:
    housekeeping = Housekeeping(board.scripts, leader, now_ms, STEP_MS)
    return Surveyor(board, "entries").survey(housekeeping)


@pytest.fixture
def now_ms(board: Board, leader: Leadership) -> int:
    """The server's clock; target 1 has a lease that ran out, target 2 is parked and due."""
    now_ms = board.now_ms()
    board.place(leader.token, [(spec(1), now_ms), (spec(2), now_ms)], 1)
    board.claim(leader.token, "a", "", {QUEUE: 100}, LIMITS, now_ms)
    board.redis.zadd(board.keys.inflight, {"1": now_ms - 1})
    board.redis.zrem(board.keys.inflight, "2")
    board.redis.hdel(board.keys.run, "2")
    board.redis.zadd(board.keys.parked, {"2": now_ms - 1})
    assert_sound(board, [1, 2])
    return now_ms


@pytest.mark.parametrize("is_known", [True, False], ids=["known scripts", "forgotten scripts"])
def test_lost_leases_and_parked_targets_are_due(
    board: Board, leader: Leadership, now_ms: int, is_known: bool
) -> None:
    """A server that was restarted does not know the scripts and gets them in the same round."""
    if not is_known:
        board.redis.script_flush()
    kept = survey(board, leader.token, now_ms).kept
    assert kept is not None
    assert [item.id for item in kept.reaped] == [1]
    assert kept.failure is None
    assert board.redis.zcard(board.keys.due(QUEUE)) == 2
    assert_sound(board, [1, 2])


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS], ids=["set back", "set forward"])
def test_nothing_moves_before_the_leader_knows_that_the_clock_was_set(
    board: Board, leader: Leadership, now_ms: int, step_ms: int
) -> None:
    """Every lease would have run out, or one that a worker set by the new clock."""
    believed_ms = now_ms - step_ms
    board.redis.zadd(board.keys.inflight, {"1": believed_ms - 1})
    board.redis.zadd(board.keys.parked, {"2": believed_ms - 1})
    found = survey(board, leader.token, believed_ms)
    assert abs(found.now_ms - now_ms) < STEP_MS
    assert found.kept is not None
    assert list(found.kept.reaped) == []
    assert board.redis.zcard(board.keys.due(QUEUE)) == 0


def test_the_moves_of_a_former_leader_are_refused(
    board: Board, leader: Leadership, now_ms: int
) -> None:
    kept = survey(board, "former", now_ms).kept
    assert kept is not None
    assert isinstance(kept.failure, NotLeader)
    assert list(kept.reaped) == []
    assert board.redis.zcard(board.keys.due(QUEUE)) == 0


def test_a_failure_hides_no_lease_that_was_lost_before_it(
    board: Board, leader: Leadership, now_ms: int
) -> None:
    """The ledger gets its row although another program damaged the next key."""
    board.redis.delete(board.keys.parked)
    board.redis.set(board.keys.parked, "another program's")
    kept = survey(board, leader.token, now_ms).kept
    assert kept is not None
    assert [item.id for item in kept.reaped] == [1]
    assert isinstance(kept.failure, errors.StoreError)
    assert "WRONGTYPE" in str(kept.failure)


def test_the_survey_reads_what_the_round_needs(board: Board, now_ms: int) -> None:
    """A damaged set of entries counts as due: RedBeat then reports it."""
    board.redis.lpush("own", "a", "b")
    board.redis.set("damaged", "by another program")
    board.redis.sadd(board.keys.own, "own", "damaged")
    surveyor = Surveyor(board, "entries")
    first = surveyor.survey(None)
    assert (first.is_empty, first.entry_s, first.kept) == (False, None, None)
    assert first.own_depths == {"own": 2}
    board.redis.zadd("entries", {"later": 20.0, "soon": 10.0})
    assert surveyor.survey(None).entry_s == 10.0
    board.redis.set("entries", "damaged")
    board.redis.hdel(board.keys.board, "version")
    last = surveyor.survey(None)
    assert (last.entry_s, last.is_empty) == (0.0, True)
    board.redis.set(board.keys.workers, "damaged")
    with pytest.raises(errors.StoreError):
        surveyor.survey(None)
