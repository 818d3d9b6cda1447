"""Who serves the queues of workers that are drained, and when they are done."""

from __future__ import annotations

from dataclasses import replace

from poller.domain.record.overview import Worker
from poller.domain.scheduling import worker_drain
from poller.domain.scheduling.worker_drain import Drain, QueueCover
from tests.unit.domain.scheduling.test_unroutable import worker

DRAIN = Drain(1, 2, "kim")


def living(*workers: Worker) -> list[Worker]:
    return list(workers)


def test_each_queue_has_the_other_workers_that_serve_it() -> None:
    """Workers that are drained together do not serve for each other."""
    workers = living(
        worker("w1", queues="poll.snmp job.acme"),
        worker("w2", queues="poll.snmp poll.http"),
        worker("w3", queues="poll.snmp"),
    )
    assert worker_drain.cover(["w1", "w2"], workers) == [
        QueueCover("job.acme", []),
        QueueCover("poll.http", []),
        QueueCover("poll.snmp", ["w3"]),
    ]
    assert [each.is_poll for each in worker_drain.cover(["w1"], workers)] == [False, True]


def test_a_worker_is_drained_when_nothing_is_left() -> None:
    """It takes from no queue, and has neither batch nor job nor a retry that waits."""
    done = replace(worker("w1"), drain=DRAIN)
    assert worker_drain.is_drained(done)
    assert not worker_drain.is_drained(worker("w1"))
    assert not worker_drain.is_drained(replace(done, unfinished=1))
    assert not worker_drain.is_drained(replace(done, queues=["poll.snmp"]))
