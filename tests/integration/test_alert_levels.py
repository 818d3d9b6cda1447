"""Marks, news and levels on a real board: what workers leave there for the keeper of alerts."""

from __future__ import annotations

import pytest
import redis

from poller.domain.alerts import mark
from poller.domain.alerts.mark import Mark
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.state.board import down_devices
from poller.state.board.alert_levels import AlertLevels, News
from poller.state.board.board_repair import Repair
from poller.state.board.board_values import MarkChange, Move, NotLeader, Removal, Report
from poller.state.board.moves import Board
from poller.state.cluster.leader_lock import Leadership
from tests.integration.boards import NOW, QUEUE, claim, fill, spec

HOT = Mark(7, "ifName=eth0", NOW - 60_000, NOW, 91.25, {"ifName": "eth0", "ifAlias": "Ühr"})
SLOW = Mark(8, "", NOW, NOW)
SOON = NOW + 1_000


@pytest.fixture
def levels(board: Board) -> AlertLevels:
    return AlertLevels(board)


@pytest.fixture
def claimed(board: Board, leader: Leadership) -> list[int]:
    """Targets that a worker was given under the token `a`."""
    ids = fill(board, leader)
    claim(board, leader)
    return ids


def finish(board: Board, marks: list[MarkChange], ids: list[int], token: str = "a") -> None:
    status = Status(State.OK, finished_ms=NOW, ok_ms=NOW).pack()
    moves = [Move(target_id, NOW + 60_000, status) for target_id in ids]
    board.finish(token, moves, now_ms=NOW, queue=QUEUE, marks=marks)


def marks_at_start(board: Board, leader: Leadership, token: str) -> dict[int, str]:
    """The marks that a worker gets with its next batch."""
    board.demand([1, 2])
    claim(board, leader, token, published="a")
    start = board.start(token, 0, "c", 15_000, [1, 2], NOW)
    return {target.id: target.marks for target in start.targets}


def test_marks_of_a_finished_poll_come_with_the_next_start(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    """The next worker gets them, whichever it is; a target without marks gets none."""
    finish(board, [MarkChange(1, mark.pack([HOT]), True)], claimed)
    assert levels.marks(claimed) == {1: [HOT]}
    assert marks_at_start(board, leader, "b") == {1: mark.pack([HOT]), 2: ""}


def test_marks_that_end_leave_the_board(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    finish(board, [MarkChange(1, mark.pack([HOT]), True)], claimed)
    marks_at_start(board, leader, "b")
    finish(board, [MarkChange(1, "", True)], [1, 2], token="b")
    assert levels.marks(claimed) == {}
    assert not board.redis.exists(board.keys.marks)


def test_marks_of_a_target_that_is_no_longer_ours_are_refused(
    board: Board, levels: AlertLevels, claimed: list[int]
) -> None:
    """A worker that was paused beyond its lease changes nothing."""
    finish(board, [MarkChange(1, mark.pack([HOT]), True)], claimed, token="late")
    assert levels.marks(claimed) == {}
    assert levels.news(SOON).target_ids == []


def test_marks_of_a_removed_target_are_gone_and_news(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    finish(board, [MarkChange(1, mark.pack([HOT]), False)], claimed)
    board.place(leader.token, [Removal(1)], 2)
    assert levels.marks(claimed) == {}
    assert levels.news(board.now_ms() + 1).target_ids == [1]


def test_a_removal_in_flight_keeps_no_marks_of_its_last_poll(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    board.place(leader.token, [Removal(1)], 2)
    finish(board, [MarkChange(1, mark.pack([HOT]), True)], claimed)
    assert levels.marks(claimed) == {}


def test_a_refreshed_mark_is_no_news(board: Board, levels: AlertLevels, claimed: list[int]) -> None:
    changes = [MarkChange(1, mark.pack([HOT]), True), MarkChange(2, mark.pack([SLOW]), False)]
    finish(board, changes, claimed)
    assert levels.news(SOON).target_ids == [1]
    assert levels.marks([1, 2]) == {1: [HOT], 2: [SLOW]}


def failure(target_id: int, device_id: int) -> Report:
    def event(kind: Kind) -> Event:
        return Event(NOW, kind, "x", device_id=device_id, target_id=target_id)

    down, failing = event(Kind.DEVICE_WENT_DOWN), event(Kind.TARGET_FAILED)
    up, well = event(Kind.DEVICE_RECOVERED), event(Kind.TARGET_RECOVERED)
    return Report(target_id, device_id, "", (), down, up, failing, well)


def end(board: Board, status: Status, token: str) -> None:
    """End a poll of target 1 of device 50."""
    moves = [Move(1, NOW + 60_000, status.pack())]
    board.finish(token, moves, now_ms=NOW, queue=QUEUE, reports=[failure(1, 50)])


WELL = Status(State.OK, finished_ms=NOW, ok_ms=NOW)


def test_a_device_that_goes_down_and_comes_back_is_news(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    """Its silent targets are not told apart."""
    end(board, Status(State.FAILING, NOW, 2, NOW, code="timeout", confirmed=True), "a")
    news = levels.news(SOON)
    assert (news.device_ids, news.target_ids) == ([50], [])
    assert levels.down_devices() == {50: (NOW, [1])}
    assert levels.statuses([1])[1].code == "timeout"
    levels.forget_news(news)

    board.demand([1])
    claim(board, leader, "b", published="a")
    end(board, WELL, "b")
    assert levels.news(SOON).device_ids == [50]
    assert levels.down_devices() == {}


def test_a_target_that_fails_and_recovers_is_news(
    board: Board, leader: Leadership, levels: AlertLevels, claimed: list[int]
) -> None:
    """Its device responds, so only the target is told."""
    end(board, Status(State.FAILING, NOW, 2, NOW, code="auth_failed", confirmed=True), "a")
    news = levels.news(SOON)
    assert (news.device_ids, news.target_ids, levels.troubled()) == ([], [1], {1})
    levels.forget_news(news)

    board.demand([1])
    claim(board, leader, "b", published="a")
    end(board, WELL, "b")
    assert (levels.news(SOON).target_ids, levels.troubled()) == ([1], set())


def test_a_device_that_left_the_board_while_it_was_down_is_news(
    board: Board, levels: AlertLevels
) -> None:
    down_devices.restore(board, {50: [1]}, [], NOW)
    assert down_devices.forget_absent(board, NOW + 120_000) == 1
    assert levels.news(NOW + 120_001).device_ids == [50]


def test_news_that_changed_since_they_were_read_stay(board: Board, levels: AlertLevels) -> None:
    """Nothing is lost between a read and the commit in SQL."""
    board.redis.zadd(board.keys.alert_news, {"t1": NOW, "d2": NOW + 1})
    news = levels.news(SOON)
    assert (news.target_ids, news.device_ids, news.read_until_ms) == ([1], [2], SOON)
    board.redis.zadd(board.keys.alert_news, {"t1": NOW + 2})
    assert levels.forget_news(news) == 1
    assert levels.news(SOON).target_ids == [1]


def test_a_long_list_of_news_comes_in_parts(board: Board, levels: AlertLevels) -> None:
    board.redis.zadd(board.keys.alert_news, {f"t{n}": NOW + n for n in range(5)})
    first = levels.news(SOON, limit=2)
    assert (first.target_ids, first.read_until_ms) == ([0, 1], NOW + 1)
    levels.forget_news(first)
    assert levels.news(SOON).target_ids == [2, 3, 4]
    assert levels.news(NOW).entries == {}


def test_lost_marks_come_back_beside_those_that_are_there(
    board: Board, levels: AlertLevels, leader: Leadership, claimed: list[int]
) -> None:
    """A worker may have judged the target again meanwhile: its mark is newer and stays."""
    newer = Mark(7, "ifName=eth0", NOW, NOW, 99.0, {"ifName": "eth0"})
    finish(board, [MarkChange(1, mark.pack([newer]), True)], claimed)
    lost = {1: mark.pack([HOT, SLOW]), 2: mark.pack([HOT]), 99: mark.pack([HOT])}
    assert levels.put_marks(leader.token, lost) == 2
    assert levels.marks([1, 2, 99]) == {1: [newer, SLOW], 2: [HOT]}
    assert levels.put_marks(leader.token, lost) == 0


def test_all_marks_are_read_in_pages(board: Board, levels: AlertLevels, leader: Leadership) -> None:
    ids = fill(board, leader, 3)
    levels.put_marks(leader.token, {target_id: mark.pack([HOT]) for target_id in ids})
    found = {target_id: marks for page in levels.all_marks() for target_id, marks in page.items()}
    assert found == {target_id: [HOT] for target_id in ids}


def test_only_the_leader_restores_marks_and_tells_the_version(
    board: Board, levels: AlertLevels, leader: Leadership, claimed: list[int]
) -> None:
    for call in (
        lambda: levels.put_marks("stale", {1: mark.pack([HOT])}),
        lambda: levels.set_rules_version("stale", 4),
    ):
        with pytest.raises(NotLeader):
            call()
    assert (levels.marks(claimed), levels.rules_version()) == ({}, 0)


def test_the_version_of_the_rules_comes_with_start(
    board: Board, levels: AlertLevels, leader: Leadership, claimed: list[int]
) -> None:
    """0 until a leader told one, and for a text that another program damaged."""
    assert board.start("a", 0, "c", 15_000, [1], NOW).rules_version == 0
    levels.set_rules_version(leader.token, 12)
    assert board.start("a", 0, "c", 15_000, [2], NOW).rules_version == 12
    board.redis.set(board.keys.rules, "rubbish")
    assert board.start("a", 0, "c", 15_000, [3], NOW).rules_version == 0


def test_stale_targets_are_listed_the_stalest_first(
    board: Board, levels: AlertLevels, claimed: list[int]
) -> None:
    board.redis.zadd(board.keys.unwell, {"1": NOW, "2": NOW - 5, "3": 0, "4": NOW + 5, "5": NOW})
    assert levels.unwell_before(NOW) == [(3, 0), (2, NOW - 5)]
    assert levels.unwell_before(NOW + 1, limit=3) == [(3, 0), (2, NOW - 5), (1, NOW)]


def test_marks_without_a_target_are_damage_that_repair_removes(
    board: Board, levels: AlertLevels, leader: Leadership
) -> None:
    """`poller board check` calls such a target a stray."""
    fill(board, leader, 2)
    board.redis.hset(board.keys.marks, "77", mark.pack([HOT]))
    specs = [spec(1), spec(2)]
    assert Repair(board).check(specs).strays == [77]
    Repair(board).repair(specs, 1, lambda _: NOW)
    assert levels.marks([77]) == {}
    assert Repair(board).check(specs).sound


def test_a_damaged_text_of_marks_is_read_as_none(
    board: Board, levels: AlertLevels, redis_client: redis.Redis
) -> None:
    for text in ("", "x", "{}", "[1]", '[["a","b",1,2,null,{}]]', '[[1,"b",1,2,null,[]]]'):
        redis_client.hset(board.keys.marks, "1", text)
        assert levels.marks([1]).get(1, []) == []


def test_news_of_a_future_kind_are_ignored(board: Board, levels: AlertLevels) -> None:
    news = News({"x1": 1.0, "tx": 1.0}, NOW)
    assert (news.device_ids, news.target_ids) == ([], [])
