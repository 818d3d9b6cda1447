"""`celery -A poller worker` polls with each pool, and hands back its targets when it stops."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry
from tests.acceptance.cluster import Cluster, Program, soon

pytestmark = pytest.mark.timeout(120)

QUEUE = "poll.recorder\x06\x165"
#: Small batches, and more targets than the worker can poll.
NUMBERS = {"POLLER_BATCH_SIZE": "4", "POLLER_WORKER_DRAIN_S": "1"}


def polling_worker(cluster: Cluster) -> Worker | None:
    workers = worker_registry.registered(cluster.services.redis, cluster.services.keys)
    return next((worker for worker in workers if worker.polls >= 8), None)


def overloaded(cluster: Cluster, *words: str) -> Program:
    """Start a worker that polls, and leaves batches in its queue."""
    cluster.valkey.start()
    cluster.add_targets(400, 1.0, 0.5)
    cluster.start_beat()
    worker = cluster.start_worker(*words)
    soon(lambda: cluster.valkey.client.llen(QUEUE) >= 2, 20, "batches wait")
    soon(lambda: cluster.record.polls(), 20, "it polls")
    return worker


@pytest.mark.parametrize(
    ("words", "slots", "polling"),
    [([], 16, 1), (["-P", "prefork", "-c", "2"], 2, 2), (["-P", "solo"], 1, 1)],
    ids=["threads", "prefork", "solo"],
)
def test_each_pool_polls_and_stops_cleanly(
    tmp_path: Path, words: list[str], slots: int, polling: int
) -> None:
    """After SIGTERM under load, running batches are finished or handed back."""
    with Cluster(tmp_path, **NUMBERS) as cluster:
        worker = overloaded(cluster, *words)
        entry = soon(lambda: polling_worker(cluster), 20, "its heartbeat has polls")
        assert entry.slots == slots
        assert entry.rss_bytes > 10_000_000
        assert len({poll.pid for poll in cluster.record.polls()}) == polling
        worker.terminate()
        assert worker.wait(15) == 0
        assert cluster.services.board.sizes()[2] == 0, "a target waits for its lease"
        assert cluster.valkey.client.keys("poll.*") == []
        assert worker_registry.registered(cluster.services.redis, cluster.services.keys) == []
        assert list((tmp_path / "home" / "flights").iterdir()) == []
        assert "Traceback" not in worker.text()
        assert "poller.poll[" not in worker.text(), "a line for each task"
        cluster.sound()


def test_a_cold_stop_hands_back_all_targets(tmp_path: Path) -> None:
    """After SIGQUIT all running polls are handed back."""
    with Cluster(tmp_path, **{**NUMBERS, "POLLER_WORKER_DRAIN_S": "60"}) as cluster:
        worker = overloaded(cluster)
        worker.signal(signal.SIGQUIT)
        worker.wait(20)
        assert cluster.services.board.sizes()[2] == 0
        cluster.sound()


def test_a_broker_reset_costs_no_capacity(tmp_path: Path) -> None:
    """Celery counts its prefetch anew; lent capacity must not count as its own."""
    with Cluster(tmp_path, POLLER_BATCH_SIZE="1") as cluster:
        cluster.valkey.start()
        cluster.add_targets(12, 4.0, 3.0, timeout_s=3.5)
        beat = cluster.start_beat()
        worker = cluster.start_worker("--concurrency", "4")
        soon(lambda: cluster.prefetch() > 5, 30, "batches lend capacity")
        cluster.valkey.kill()
        soon(lambda: "Connection to broker lost" in worker.text(), 10, "the consumer reconnects")
        cluster.valkey.start()
        cluster.all_polled(time.time(), 20)
        assert cluster.prefetch() > 4, "no capacity is lent"
        beat.terminate()
        beat.wait(10)
        soon(lambda: cluster.services.board.sizes()[2] == 0, 10, "no target is in flight")
        assert cluster.prefetch() == 4


def test_a_concurrency_beyond_the_open_files_is_refused(tmp_path: Path) -> None:
    """The worker ends before its first poll, with the name of the setting."""
    with Cluster(tmp_path) as cluster:
        worker = cluster.start_worker("--concurrency", "1000000")
        assert worker.wait(20) == os.EX_CONFIG
        assert (
            "error[P210]: worker_concurrency: 1000000 batches of 64 targets (batch_size)"
            in worker.text()
        )
        assert "Traceback" not in worker.text()
