"""The consequences of every error code with the default settings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from poller import errors
from poller.domain.failures import circuit_breaker, dead_letter, error_codes, retry
from poller.domain.failures.circuit_breaker import CLOSED, Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.error_codes import DeadLetterRule
from poller.domain.failures.outcome import Outcome, Result, from_error
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.settings import Settings, policies

NOW = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 86_400_000
NEVER = 1_000_000_000


@dataclass(frozen=True)
class Expected:
    """`opens_after` failures in a row the breaker opens for `first_ms`, then for `second_ms`."""

    opens_after: int = 3
    first_ms: int = 30_000
    second_ms: int = 60_000
    #: The reason of the dead letter when the breaker opens, opens twice, is open for an hour and
    #: for a day.
    once: Reason | None = None
    twice: Reason | None = None
    an_hour: Reason | None = None
    a_day: Reason | None = Reason.OPEN_TOO_LONG
    retried: bool = False


RETRIED = Expected(retried=True)
FINDING = Expected(opens_after=NEVER, a_day=None)


def at_opening(reason: Reason) -> Expected:
    return Expected(once=reason, twice=reason, an_hour=reason, a_day=reason)


OWN_LIMIT = Expected(opens_after=NEVER)

FAILED = {
    "unreachable": RETRIED,
    "timeout": RETRIED,
    "auth_failed": Expected(
        opens_after=1,
        first_ms=900_000,
        second_ms=900_000,
        twice=Reason.AUTH_FAILED,
        an_hour=Reason.AUTH_FAILED,
        a_day=Reason.AUTH_FAILED,
    ),
    "protocol_error": Expected(
        retried=True, an_hour=Reason.PROTOCOL_ERROR, a_day=Reason.PROTOCOL_ERROR
    ),
    "unsupported": at_opening(Reason.UNSUPPORTED),
    "down": FINDING,
    "unwell": replace(FINDING, retried=True),
    "rejected": FINDING,
    "host_busy": OWN_LIMIT,
    "device_error": RETRIED,
    "collector_crashed": at_opening(Reason.COLLECTOR_CRASHED),
    "collector_died": Expected(opens_after=1),
    "collector_busy": OWN_LIMIT,
    # The next poll reads the file again: no wait, no dead letter.
    "options_invalid": Expected(opens_after=NEVER, a_day=None),
    "worker_died": Expected(opens_after=1),
}
REFUSED = {
    "collector_quarantined": Reason.COLLECTOR_QUARANTINED,
    "collector_missing": Reason.NOT_POLLABLE,
    "options_invalid": Reason.NOT_POLLABLE,
    "credential_unusable": Reason.NOT_POLLABLE,
}
#: The reaper writes the run; the poll has no outcome, and the status of the target stays as it is.
WITHOUT_OUTCOME = {"lease_lost"}


RULES = policies.breaker_rules(Settings())


def breaker_after(before: Breaker, failures: int, code: str) -> Breaker:
    return circuit_breaker.record(before, failures, code, NOW, RULES, 0.0)


def test_the_tables_of_this_test_are_complete() -> None:
    """Every code is the code of a failed or refused poll, or of a run without an outcome."""
    assert {*FAILED, *REFUSED, *WITHOUT_OUTCOME} == set(error_codes.TABLE)


@pytest.mark.parametrize(("code", "expected"), FAILED.items(), ids=list(FAILED))
def test_when_a_failed_poll_opens_the_breaker(code: str, expected: Expected) -> None:
    """One failure before the limit leaves the breaker closed."""
    assert breaker_after(CLOSED, expected.opens_after - 1, code) == CLOSED
    opened = breaker_after(CLOSED, expected.opens_after, code)
    if expected.opens_after == NEVER:
        assert opened == CLOSED
    else:
        assert opened == Breaker(1, NOW, NOW + expected.first_ms)


@pytest.mark.parametrize(("code", "expected"), FAILED.items(), ids=list(FAILED))
def test_how_long_a_failed_probe_keeps_the_breaker_open(code: str, expected: Expected) -> None:
    """A failure that opens no breaker does not close one either, except a finding."""
    again = breaker_after(Breaker(1, NOW - 1, NOW), 6, code)
    if error_codes.TABLE[code].finding:
        assert again == CLOSED
    else:
        assert again == Breaker(2, NOW - 1, NOW + expected.second_ms)


@pytest.mark.parametrize(("code", "expected"), FAILED.items(), ids=list(FAILED))
def test_when_a_failed_poll_is_a_dead_letter(code: str, expected: Expected) -> None:
    """Never at the first failure of the usual kind; an earlier reason stays."""
    outcome = Outcome(Result.FAILED, code)

    def reason(breaker: Breaker, before: Reason | None = None) -> Reason | None:
        return dead_letter.reason(outcome, breaker, NOW, DAY_MS, before)

    assert reason(CLOSED) is None
    assert reason(CLOSED, Reason.NOT_POLLABLE) is Reason.NOT_POLLABLE
    assert reason(Breaker(1, NOW, NOW)) is expected.once
    assert reason(Breaker(2, NOW, NOW)) is expected.twice
    assert reason(Breaker(9, NOW - HOUR_MS + 1, NOW)) is expected.twice
    assert reason(Breaker(9, NOW - HOUR_MS, NOW)) is expected.an_hour
    assert reason(Breaker(99, NOW - DAY_MS, NOW)) is expected.a_day


@pytest.mark.parametrize(("code", "expected"), REFUSED.items(), ids=list(REFUSED))
def test_a_refused_poll_is_a_dead_letter_at_once(code: str, expected: Reason) -> None:
    """The earlier reason of a dead letter gives way to the reason of the refusal."""
    outcome = Outcome(Result.REFUSED, code)
    for breaker in (CLOSED, Breaker(9, NOW - DAY_MS, NOW)):
        for before in (None, Reason.AUTH_FAILED, Reason.OPEN_TOO_LONG):
            assert dead_letter.reason(outcome, breaker, NOW, DAY_MS, before) is expected


def test_the_codes_of_refused_polls_are_dead_letters_at_once_in_the_table() -> None:
    """The decision for a refused poll and the printed rule are the same."""
    at_once = {DeadLetterRule.AT_ONCE, DeadLetterRule.AT_ONCE_IF_REFUSED}
    assert set(REFUSED) == {
        code for code, row in error_codes.TABLE.items() if row.dead_letter in at_once
    }


def test_a_broken_options_file_opens_no_breaker_and_is_no_dead_letter() -> None:
    """The next poll reads the file again, so a repaired file is in use at the next slot."""
    outcome = from_error(errors.OptionsUnusable("snmp.yml is broken"))
    breaker = CLOSED
    for failures in range(1, 2_000):
        breaker = breaker_after(breaker, failures, outcome.error_code)
    assert breaker == CLOSED
    long_open = Breaker(99, NOW - 2 * DAY_MS, NOW)
    assert dead_letter.reason(outcome, long_open, NOW, DAY_MS) is None


def test_which_failures_are_retried() -> None:
    """A poll at an interval of a minute has the time for a retry; only the code decides."""
    for kind in device_errors():
        outcome = from_error(kind("no"))
        worthwhile = retry.is_worthwhile(outcome, 0, 0, 5_000, 60_000, retry.Limits())
        assert worthwhile is FAILED[kind.error_code].retried


def test_which_failures_keep_the_poll_failed_although_it_has_readings() -> None:
    """The readings of a probe are its finding; any other poll with readings is partial."""
    readings = ReadingSet.of([Reading("up", 0.0)])
    for kind in device_errors():
        is_finding = kind.error_code in ("down", "unwell", "rejected")
        expected = Result.FAILED if is_finding else Result.PARTIAL
        assert from_error(kind("no"), readings).result is expected


def device_errors() -> list[type[errors.DeviceError]]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return [kind for kind in kinds if issubclass(kind, errors.DeviceError)]
