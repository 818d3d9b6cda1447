"""Check-ins of jobs to Sentry: their contents and limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from poller.domain.jobs.job_run import Plan
from poller.domain.jobs.job_schedule import Cadence, Cron, Schedule
from poller.domain.jobs.job_terms import JobTerms
from poller.observability import check_ins
from poller.observability.check_ins import CheckIns
from poller.observability.report_quota import Quota


class Sent(list[Mapping[str, Any]]):
    """The events that were sent, and a clock that a test moves."""

    def __init__(self, per_minute: int = 100) -> None:
        self.now = 0.0
        self.check_ins = CheckIns(self.append, Quota(per_minute, lambda: self.now))

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(event["monitor_slug"], event["status"]) for event in self]


def terms(name: str = "nightly", schedule: Schedule | None = None, **values: Any) -> JobTerms:
    return JobTerms(name, schedule or Cadence(60_000), **values)


def plan(scope: str = "global", plan_ms: int = 0) -> Plan:
    return Plan("nightly", "site", scope, plan_ms)


def test_a_run_is_one_check_in_with_its_monitor() -> None:
    """Begin and end have one id, and the end has the duration."""
    sent = Sent()
    nightly = terms(
        schedule=Cron("0 2 * * *", "Europe/Amsterdam"), delay_s=90, run_timeout_s=3601.0
    )
    check_in_id = sent.check_ins.began(nightly, plan(), 1)
    sent.check_ins.ended(nightly, check_in_id, is_ok=True, duration_s=1.23456)
    began, ended = sent
    assert (began["status"], "duration" in began) == ("in_progress", False)
    assert (ended["status"], ended["duration"]) == ("ok", 1.235)
    assert began["check_in_id"] == ended["check_in_id"] == check_in_id
    assert ended["monitor_config"] == {
        "schedule": {"type": "crontab", "value": "0 2 * * *"},
        "timezone": "Europe/Amsterdam",
        "checkin_margin": 4,
        "max_runtime": 61,
    }
    assert set(ended) == {
        *("type", "check_in_id", "monitor_slug", "status", "monitor_config", "duration"),
    }


@pytest.mark.parametrize(("every_s", "minutes"), [(5, 1), (60, 1), (61, 2), (86_400, 1440)])
def test_a_cadence_is_an_interval_of_whole_minutes(every_s: int, minutes: int) -> None:
    """Sentry knows no seconds: a shorter cadence is watched as one minute."""
    monitor = check_ins.monitor(terms(schedule=Cadence(every_s * 1000)))
    assert monitor["schedule"] == {"type": "interval", "value": minutes, "unit": "minute"}


def test_a_fast_job_has_one_check_in_a_minute() -> None:
    """Every check-in that began also ends."""
    sent = Sent()
    for second in range(0, 120, 5):
        sent.now = float(second)
        check_in_id = sent.check_ins.began(terms(), plan(plan_ms=second * 1000), 1)
        sent.check_ins.ended(terms(), check_in_id, is_ok=True, duration_s=0.1)
    assert sent.pairs == [("nightly", "in_progress"), ("nightly", "ok")] * 2


def test_the_failure_of_one_scope_is_not_hidden_by_the_others() -> None:
    """A failure is told even if the begin of its run was not, once a minute."""
    sent = Sent()
    ids = [sent.check_ins.began(terms(), plan(scope), 1) for scope in ("a", "b", "c")]
    for check_in_id, is_ok in zip(ids, (True, False, False), strict=True):
        sent.check_ins.ended(terms(), check_in_id, is_ok, 0.1)
    assert [status for _, status in sent.pairs] == ["in_progress", "ok", "error"]
    assert len({event["check_in_id"] for event in sent}) == 2


def test_an_attempt_that_was_given_back_goes_on_under_its_id() -> None:
    """Another attempt, plan or scope has another id."""
    ids = [
        check_ins.identity(*each)
        for each in ((plan(), 1), (plan(), 1), (plan(), 2), (plan("b"), 1), (plan(plan_ms=1), 1))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    assert {len(each) for each in ids} == {32}


def test_a_process_has_a_limit() -> None:
    sent = Sent(per_minute=3)
    for number in range(10):
        sent.check_ins.began(terms(f"job-{number}"), plan(), 1)
    assert len(sent) == 3


def test_a_slug_is_one_that_sentry_takes() -> None:
    """Small letters, digits, - and _, 50 at most; long names stay apart."""
    assert check_ins.slug("nightly_report-2") == "nightly_report-2"
    assert check_ins.slug("Acme.Nightly") == "acme-nightly"
    long = [check_ins.slug("x" * 90 + end) for end in ("a", "b")]
    assert long[0] != long[1]
    assert {len(each) for each in long} == {50}
