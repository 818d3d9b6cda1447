"""When the leader's lock is renewed: only while its ticks make progress."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from poller.beat import leadership
from poller.beat.leadership import STUCK_AFTER_S, Leader

LOCK_S = 4.0


class FakeLock:
    """A lock that this process holds; counts the renewals."""

    name = "host:1"
    token = "host:1:a"
    lock_ms = round(LOCK_S * 1000)

    def __init__(self) -> None:
        self.renewals = 0
        self.is_ours = True

    def take(self) -> tuple[int, bool]:
        return 1, True

    def stand_by(self, now_ms: int) -> None:
        """Accepted."""

    def renew(self) -> bool:
        self.renewals += 1
        return self.is_ours


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(leadership, "time", SimpleNamespace(monotonic=lambda: self.now))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def lock() -> FakeLock:
    return FakeLock()


@pytest.fixture
def leader(clock: Clock, lock: FakeLock) -> Leader:
    made = Leader(lock, 1.0)  # type: ignore[arg-type]
    made.try_to_lead()
    return made


def renewed(leader: Leader, lock: FakeLock) -> bool:
    before = lock.renewals
    leader._renew()
    return lock.renewals > before


def test_each_step_of_a_slow_tick_lets_the_renewal_go_on(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    """A tick of ten round trips of a second each keeps the lead."""
    for _ in range(10):
        clock.now += 1
        leader.made_progress()
        assert renewed(leader, lock)
        assert leader.leads


def test_a_tick_without_progress_loses_the_lead(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    clock.now += STUCK_AFTER_S + 0.1
    assert not renewed(leader, lock)
    clock.now += LOCK_S
    assert not leader.leads


def test_after_a_failed_tick_only_a_whole_one_counts(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    """The first step of every tick may succeed, and the tick fail, for ever."""
    for _ in range(4):
        leader.made_progress()
        clock.now += 1
        leader.failed_tick()
    assert not renewed(leader, lock)
    leader.allow(60)
    assert not renewed(leader, lock)
    leader.completed_tick()
    assert renewed(leader, lock)
    clock.now += STUCK_AFTER_S
    leader.made_progress()
    assert renewed(leader, lock)


def test_a_step_of_a_library_may_take_longer_and_the_next_one_not(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    leader.allow(15)
    clock.now += 15
    assert renewed(leader, lock)
    leader.made_progress()
    clock.now += STUCK_AFTER_S + 0.1
    assert not renewed(leader, lock)


def test_a_step_of_a_library_that_failed_has_no_more_time(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    leader.allow(15)
    leader.failed_tick()
    clock.now += STUCK_AFTER_S + 0.1
    assert not renewed(leader, lock)


def test_progress_makes_no_leader_of_a_process_that_lost_the_lock(
    leader: Leader, lock: FakeLock, clock: Clock
) -> None:
    """The lock in Redis decides, and without an answer the time of the last one."""
    lock.is_ours = False
    leader.made_progress()
    assert renewed(leader, lock)
    assert not leader.leads
    leader.made_progress()
    leader.completed_tick()
    assert not leader.leads


def test_the_lead_lasts_from_the_request_not_from_the_answer(
    leader: Leader, lock: FakeLock, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow_renewal() -> bool:
        clock.now += 1.0
        return True

    monkeypatch.setattr(lock, "renew", slow_renewal)
    requested = clock.now
    leader._renew()
    clock.now = requested + LOCK_S - 0.01
    assert leader.leads
    clock.now = requested + LOCK_S
    assert not leader.leads


def test_a_standby_says_once_that_it_stands_by(clock: Clock, lock: FakeLock) -> None:
    """Again only after it led."""
    standby = Leader(lock, 1.0)  # type: ignore[arg-type]
    with capture_logs() as lines:
        for _ in range(3):
            standby.stand_by(1)
    assert [line["event"] for line in lines] == ["standing_by"]
    standby.try_to_lead()
    with capture_logs() as lines:
        standby.stand_by(2)
    assert [(line["log_level"], line["event"]) for line in lines] == [("info", "standing_by")]
