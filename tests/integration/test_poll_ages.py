"""The age of data on a real board: every target once, in windows, and why data are old."""

from __future__ import annotations

import pytest

from poller.bootstrap import Services
from poller.domain.fleet import poll_ages
from poller.domain.fleet.poll_ages import PollAges
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Decision
from poller.service.fleet import age_picture
from poller.state.board.board_reader import BoardReader
from poller.state.board.breakers import Breakers
from poller.state.board.record_formats import Opening
from poller.state.fleet import poll_age_scan
from tests.integration.boards import NOW, spec

MINUTE = 60_000


def tell(board: BoardReader, statuses: dict[int, Status]) -> None:
    packed = {str(target_id): status.pack() for target_id, status in statuses.items()}
    board.redis.hset(board.keys.status, mapping=packed)


def good(age_ms: int, **changes: object) -> Status:
    ok_ms = NOW - age_ms
    return Status(State.OK, ok_ms, ok_ms, ok_ms, ok_ms)._replace(**changes)


def test_every_target_is_in_its_band_with_what_explains_it(services: Services) -> None:
    """Failing, paused and held targets are kept in; an adaptive one has the interval it chose."""
    board = services.board
    board.place("", [(spec(number), NOW) for number in range(1, 9)], 1)
    slow = Decision(0.0, 0, 0, 600_000, 600_000, 600_000)
    failing = good(10 * MINUTE, state=State.FAILING, code="timeout", message="a, b")
    tell(
        board,
        {
            1: good(MINUTE // 4),
            2: good(MINUTE),
            3: good(2 * MINUTE),
            4: good(5 * MINUTE, decision=slow),
            5: failing,
            6: good(10 * MINUTE),
            7: failing,
        },
    )
    Breakers(board).open([6], Opening(NOW + MINUTE, NOW, "anna"))
    board.redis.zadd(services.keys.held, {"7": 3})
    found = poll_age_scan.read(board, 0, 100, NOW)
    expected = PollAges((2, 1, 0, 1, 3), never=1, failing=1, paused=1, held=1, late=1)
    assert found == (expected, 0)


def test_windows_go_through_the_fleet(services: Services) -> None:
    """Each window is bounded, and together they have every target."""
    board = services.board
    count = 9_000
    board.place("", [(spec(number), NOW) for number in range(1, count + 1)], 1)
    parts = []
    cursor, windows = 0, 0
    while not windows or cursor:
        ages, cursor = poll_age_scan.read(board, cursor, 2_000, NOW)
        parts.append(ages)
        windows += 1
        assert ages.looked_at < 6_000
    assert windows > 1
    assert poll_ages.total(parts) == PollAges(never=count)


def test_a_large_fleet_is_counted_over_several_looks(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first looks are a sample; then the last whole count stands until the next one."""
    monkeypatch.setattr(age_picture, "TARGETS", 2_000)
    monkeypatch.setattr(age_picture, "PAUSE_S", 0.0)
    board = services.board
    board.place("", [(spec(number), NOW) for number in range(1, 6_001)], 1)
    first = age_picture.picture(services)
    assert not first.whole
    assert 2_000 <= first.ages.looked_at < 6_000
    looks = [age_picture.picture(services) for _ in range(5)]
    assert looks[-1].whole
    assert looks[-1].ages == PollAges(never=6_000)


def test_a_look_is_shared_by_all_viewers(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a second the picture is the same object; one that was forgotten is counted anew."""
    services.board.place("", [(spec(1), NOW)], 1)
    first = age_picture.picture(services)
    services.board.place("", [(spec(2), NOW)], 2)
    assert age_picture.picture(services) is first
    monkeypatch.setattr(age_picture, "PAUSE_S", 0.0)
    monkeypatch.setattr(age_picture, "FORGOTTEN_S", 0.0)
    assert age_picture.picture(services).ages.looked_at == 2
