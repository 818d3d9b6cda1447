"""The reason why no worker serves a queue, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poller.domain.record.overview import Worker
from poller.domain.scheduling import unroutable
from poller.domain.scheduling.worker_drain import Drain


def worker(name: str, *tags: str, collectors: str = "snmp", queues: str = "") -> Worker:
    """`tags` as key=value; collectors and queues as words."""
    carried = dict(tag.split("=") for tag in tags)
    return Worker(
        name, 0, 0, 0, 0, 0, carried, dict.fromkeys(collectors.split(), "1.0"), queues.split()
    )


PLAIN = [worker("w1"), worker("w2", "zone=lan"), worker("w3", "site=ams")]


@pytest.mark.parametrize(
    ("queue", "living", "said"),
    [
        ("poll.snmp", [worker("w1", queues="poll.snmp")], ""),
        ("poll.snmp", [], "needs collector snmp; no worker is live"),
        ("poll.snmp;zone=dmz", [], "needs collector snmp and tag zone=dmz; no worker is live"),
        ("poll.snmp;zone=dmz", PLAIN, "needs tag zone=dmz; 3 workers live, none has it"),
        ("poll.snmp;zone=dmz", PLAIN[:1], "needs tag zone=dmz; 1 worker live, without it"),
        ("poll.acme", PLAIN, "needs collector acme; 3 workers live, none has it"),
        (
            "poll.acme;a=b",
            PLAIN[:2],
            "needs collector acme and tag a=b; 2 workers live, none has any of them",
        ),
        (
            "poll.acme;zone=dmz",
            PLAIN[:1],
            "needs collector acme and tag zone=dmz; 1 worker live, without them",
        ),
        (
            "poll.snmp;site=ams;zone=dmz",
            PLAIN,
            "needs tag site=ams and tag zone=dmz; 3 workers live,"
            " the nearest, w3, lacks tag zone=dmz",
        ),
        (
            "poll.acme;zone=lan",
            [*PLAIN, worker("w4", collectors="snmp acme")],
            "needs collector acme and tag zone=lan; 4 workers live,"
            " the nearest, w2, lacks collector acme",
        ),
        ("poll.snmp;zone=lan", PLAIN, "w2 fits, and has not taken it up yet"),
        ("celery", PLAIN, "its name is not the name of a domain"),
        ("poll.snmp;zone", PLAIN, "its name is not the name of a domain"),
    ],
)
def test_the_reason_names_what_is_missing(queue: str, living: list[Worker], said: str) -> None:
    """The reason lists the needs that no single worker meets; a served queue has none."""
    assert unroutable.reason(queue, living) == said


def test_a_drained_worker_is_a_reason_of_its_own() -> None:
    """Unless another one fits, which will take the queue up."""
    drained = [replace(each, drain=Drain(1, 2, "kim")) for each in PLAIN]
    one = "w2 fits, but was drained by kim"
    assert unroutable.reason("poll.snmp;zone=lan", drained) == one
    assert unroutable.reason("poll.snmp", drained) == (
        "w1 fits, but was drained by kim, and so are 2 more"
    )
    waiting = [*drained, worker("w4")]
    assert unroutable.reason("poll.snmp", waiting) == "w4 fits, and has not taken it up yet"
