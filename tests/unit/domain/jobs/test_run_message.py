"""The message of a job run: what a person sees of it, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.jobs import run_message
from poller.domain.jobs.job_run import Origin, Plan
from poller.domain.jobs.run_message import RunMessage

AT_MS = 1_794_967_200_000  # 2026-11-18 02:00 UTC
HOUR_MS = 3_600_000
MESSAGE = RunMessage("prune", "global", "global", (AT_MS, AT_MS + HOUR_MS), AT_MS + 5)


def test_the_first_plan_is_run_and_the_others_follow() -> None:
    """Each plan is a task of its own."""
    assert MESSAGE.plan == Plan("prune", "global", "global", AT_MS)
    rest = MESSAGE.rest
    assert rest is not None
    assert rest.plan.plan_ms == AT_MS + HOUR_MS
    assert rest.rest is None


def test_a_person_can_read_it() -> None:
    """Flower and `celery inspect` show this text."""
    assert MESSAGE.text == "('prune', 'global', '2026-11-18T02:00:00Z', 'and 1 more')"
    site = RunMessage("report", "site", "ams", (AT_MS,), AT_MS)
    assert site.text == "('report', 'site:ams', '2026-11-18T02:00:00Z')"


def test_it_survives_its_way() -> None:
    """The arguments of the task are JSON."""
    demand = MESSAGE._replace(origin=Origin.DEMAND)
    assert run_message.parse(demand.arguments()) == demand
    assert run_message.fault(demand.arguments()) == ""


GOOD = MESSAGE.arguments()


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        GOOD[:-1],
        (*GOOD, 1),
        ("", *GOOD[1:]),
        (7, *GOOD[1:]),
        (*GOOD[:3], [], *GOOD[4:]),
        (*GOOD[:3], AT_MS, *GOOD[4:]),
        (*GOOD[:3], [str(AT_MS)], *GOOD[4:]),
        (*GOOD[:3], [True], *GOOD[4:]),
        (*GOOD[:3], [-1], *GOOD[4:]),
        (*GOOD[:3], [10**30], *GOOD[4:]),
        (*GOOD[:4], None, GOOD[5]),
        (*GOOD[:5], "rumour"),
        (*GOOD[:5], ["schedule"]),
    ],
)
def test_other_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    """Any program may write to the queues."""
    assert "it is a job run" in run_message.fault(arguments)
