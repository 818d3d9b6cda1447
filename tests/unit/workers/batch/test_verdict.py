"""The pace of bad news: when a failing target is polled again, and when its failure is confirmed.

A virtual clock: each poll takes its time limit, and the next one starts at the instant that the
judge chose.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from poller.collectors import staleness_registry
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scheduling import slots
from poller.domain.scheduling.interval import Policy
from poller.settings import Settings
from poller.state.board.board_values import Place, Start, Started
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.retries import Retries
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.batch.verdict import Judge, Verdict

BEGIN_MS = 1_800_000_000_000
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
TIMEOUT_MS = 5_000
QUEUE = "poll.snmp"


@dataclass
class Fleet:
    """One worker's judge and retries, with time that the test moves."""

    settings: Settings

    def __post_init__(self) -> None:
        self.retries = Retries(self.settings)
        sources = staleness_registry.load()
        self.judge = Judge(self.settings, sources, self.retries, chance=lambda: 0.0)

    def poll(
        self,
        target: PollTarget,
        status: Status,
        at_ms: int,
        outcome: Outcome,
        plan_ms: int | None = None,
    ) -> Verdict:
        """One poll with all its attempts. It starts at its plan time, unless another is given."""
        plan_ms = at_ms if plan_ms is None else plan_ms
        poll = FinishedPoll(
            cached=CachedTarget(target, 1),
            started=Started(target.id, Result.OK, plan_ms, 1, QUEUE, status),
            outcome=outcome,
            started_ms=at_ms,
            answered_ms=at_ms + TIMEOUT_MS,
            finished_ms=at_ms + TIMEOUT_MS,
        )
        self.retries.choose([poll], attempt=0)
        return self.judge.judge(poll, Start(at_ms, QUEUE, 0, [], 0.0, 0))

    def failing(
        self, target: PollTarget, code: str, until_ms: int, ok_ms: int = BEGIN_MS
    ) -> Iterator[Verdict]:
        """Every verdict of a target that was well at `ok_ms` and fails from the beginning on."""
        status = Status(State.OK, ok_ms, ok_ms, ok_ms, ok_ms)
        at_ms = BEGIN_MS
        while at_ms < until_ms:
            verdict = self.poll(target, status, at_ms, Outcome(Result.FAILED, code, "no"))
            yield verdict
            status, at_ms = verdict.after, verdict.move.next_ms


def target(number: int = 1, interval_ms: int = MINUTE_MS, site: str = "") -> PollTarget:
    return PollTarget(
        number, 1, "snmp", number, f"d{number}", "", site, "snmp", interval_ms, TIMEOUT_MS
    )


@pytest.fixture
def fleet() -> Fleet:
    return Fleet(Settings())


def waits_ms(verdicts: list[Verdict]) -> list[int]:
    return [verdict.move.next_ms - verdict.after.finished_ms for verdict in verdicts]


@pytest.mark.parametrize("interval_ms", [10_000, MINUTE_MS, 5 * MINUTE_MS, HOUR_MS])
def test_a_dead_device_is_confirmed_within_two_minutes(fleet: Fleet, interval_ms: int) -> None:
    """From its first failed poll, whatever the interval and the phase of the target."""
    for number in range(1, 40):
        dead = fleet.failing(target(number, interval_ms), "timeout", BEGIN_MS + 2 * HOUR_MS)
        confirmed = next(verdict for verdict in dead if verdict.after.confirmed)
        assert confirmed.after.finished_ms - BEGIN_MS <= 2 * MINUTE_MS
        assert confirmed.opened


def test_a_probe_is_confirmed_by_its_second_finding(fleet: Fleet) -> None:
    """A ping is news after half a minute, not after a whole interval."""
    first, second = list(fleet.failing(target(), "down", BEGIN_MS + 36_000))[:2]
    assert (first.after.confirmed, second.after.confirmed) == (False, True)
    assert second.after.finished_ms - BEGIN_MS <= 30_000 + 2 * TIMEOUT_MS


def test_no_wait_is_longer_than_five_minutes_after_a_good_day(fleet: Fleet) -> None:
    """From the first failure until the target has not been well for a day."""
    for number in range(1, 10):
        verdicts = list(fleet.failing(target(number), "timeout", BEGIN_MS + 23 * HOUR_MS))
        assert max(waits_ms(verdicts)) <= 5 * MINUTE_MS
        assert max(waits_ms(verdicts)) >= 4 * MINUTE_MS


def test_a_target_that_was_not_well_for_a_day_waits_longer() -> None:
    """The longest wait is then `breaker_cap_s`."""
    fleet = Fleet(Settings(deadletter_after_s=30 * 86_400))
    two_days_ago = BEGIN_MS - 48 * HOUR_MS
    verdicts = list(fleet.failing(target(), "timeout", BEGIN_MS + 6 * HOUR_MS, ok_ms=two_days_ago))
    assert 14 * MINUTE_MS <= max(waits_ms(verdicts)) <= 15 * MINUTE_MS


def test_a_dead_device_costs_no_more_polls_than_a_healthy_one(fleet: Fleet) -> None:
    """The polls that confirm the failure are saved again by the open breaker."""
    for hours, most in ((1, 20), (12, 160)):
        verdicts = list(fleet.failing(target(), "timeout", BEGIN_MS + hours * HOUR_MS))
        assert len(verdicts) <= most < hours * 60


def test_ten_thousand_dead_devices_are_polled_at_their_usual_pace(fleet: Fleet) -> None:
    """The budget of the worker limits the polls before the next slot: 100 saved, and a tenth."""
    early = 0
    for number in range(10_000):
        verdict = next(fleet.failing(target(number, 5 * MINUTE_MS), "timeout", BEGIN_MS + 1))
        early += verdict.move.next_ms - verdict.after.finished_ms < 30_000
    usual = 10_000 * 30 // 300  # slots within the next 30 seconds
    assert early <= usual + 100 + 1_000


def test_a_dark_site_is_not_confirmed_target_by_target(fleet: Fleet) -> None:
    """After ten unanswered polls in a row the targets of a site keep their slots."""
    interval_ms = HOUR_MS
    waits = [
        verdict.move.next_ms - verdict.after.finished_ms
        for number in range(100)
        for verdict in fleet.failing(target(number, interval_ms, "west"), "timeout", BEGIN_MS + 1)
    ]
    assert sum(wait <= 30_000 for wait in waits[10:]) <= 3
    assert all(wait <= 30_000 for wait in waits[:9])


@pytest.mark.parametrize("code", ["down", "unwell", "rejected"])
def test_a_finding_waits_in_due_at_every_slot_for_ever(fleet: Fleet, code: str) -> None:
    """It never goes before healthy polls, never counts as left alone, is never parked."""
    verdicts = list(fleet.failing(target(), code, BEGIN_MS + 30 * HOUR_MS))
    assert {verdict.move.place for verdict in verdicts} == {Place.DUE}
    assert max(waits_ms(verdicts)) <= MINUTE_MS
    assert not any(verdict.after.breaker.trips or verdict.reason for verdict in verdicts)
    assert not any("B" in verdict.after.mark for verdict in verdicts)


@pytest.mark.parametrize("code", ["host_busy", "collector_busy"])
def test_a_limit_of_the_worker_is_not_polled_sooner(fleet: Fleet, code: str) -> None:
    """Another poll would only add to the load that caused the failure."""
    hourly = target(interval_ms=HOUR_MS)
    verdicts = list(fleet.failing(hourly, code, BEGIN_MS + 10 * HOUR_MS))
    assert all(
        later.after.run_ms - earlier.after.run_ms == HOUR_MS
        for earlier, later in itertools.pairwise(verdicts[1:])
    )
    assert [verdict.after.confirmed for verdict in verdicts[:4]] == [False, False, True, True]


@pytest.mark.parametrize("code", ["", "timeout", "down", "auth_failed"])
@pytest.mark.parametrize("policy", [Policy.FIXED, Policy.ADAPTIVE])
def test_a_poll_that_ends_before_its_slot_serves_it(
    fleet: Fleet, code: str, policy: Policy
) -> None:
    """Clocks differ by some milliseconds. Two runs of one slot would share a row of the ledger."""
    polled = replace(target(interval_ms=10_000), policy=policy)
    plan_ms = slots.next_slot_ms(polled.id, polled.interval_ms, BEGIN_MS)
    outcome = Outcome(Result.FAILED, code, "no") if code else Outcome(Result.OK)
    status = Status(State.OK, BEGIN_MS, BEGIN_MS, BEGIN_MS, BEGIN_MS)
    began_ms = plan_ms - TIMEOUT_MS - 40
    verdict = fleet.poll(polled, status, began_ms, outcome, plan_ms)
    assert verdict.after.finished_ms == plan_ms - 40
    assert verdict.move.next_ms > plan_ms


def test_a_slot_of_a_clock_that_was_set_back_delays_no_poll(fleet: Fleet) -> None:
    """The next slot is the next one by the present clock."""
    tomorrow_ms = BEGIN_MS + 24 * HOUR_MS
    well = Status(State.OK, BEGIN_MS, BEGIN_MS, BEGIN_MS, BEGIN_MS)
    verdict = fleet.poll(target(), well, BEGIN_MS, Outcome(Result.OK), tomorrow_ms)
    assert verdict.move.next_ms <= verdict.after.finished_ms + MINUTE_MS
