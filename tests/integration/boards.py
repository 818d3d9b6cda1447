"""Moves for tests of the board: fill, claim, start, and a check of the invariant."""

from __future__ import annotations

from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.state.board.board_values import Claim, ClaimLimits
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership

QUEUE = "poll.snmp"
LIMITS = ClaimLimits(targets=1000, batch_size=10, lease_ms=30_000)
NOW = 1_800_000_000_000


def spec(
    target_id: int,
    version: int = 1,
    queue: str = QUEUE,
    interval_ms: int = 60_000,
    enabled: bool = True,
) -> TargetSpec:
    return TargetSpec(target_id, version, queue, interval_ms, 5_000, enabled)


def fill(board: Board, leader: Leadership, count: int = 5) -> list[int]:
    board.place(leader.token, [(spec(i), NOW) for i in range(1, count + 1)], 1)
    return list(range(1, count + 1))


def claim(
    board: Board,
    leader: Leadership,
    token: str = "a",
    published: str = "",
    limits: ClaimLimits = LIMITS,
    waiting: int = 100,
) -> Claim:
    return board.claim(leader.token, token, published, {QUEUE: waiting}, limits, NOW)


def start(
    board: Board, token: str, ids: list[int], attempt: int = 0, call: str = "c"
) -> list[Result]:
    started = board.start(token, attempt, call, 15_000, ids, NOW)
    return [target.result for target in started.targets]


def assert_sound(board: Board, ids: list[int]) -> None:
    check = board.check(ids)
    assert (check.lost, check.doubled) == ([], [])
