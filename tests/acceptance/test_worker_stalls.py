"""A worker whose consumer stalls recovers or ends, with an event; a sound worker goes on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from poller.state.cluster import overview_reader
from poller.workers.guard import consumer_watchdog
from poller.workers.guard.loop_watchdog import EXIT_CODE
from tests.acceptance import wedge
from tests.acceptance.cluster import Cluster, Program, soon

pytestmark = pytest.mark.timeout(120)

#: A shorter period than a worker's own, so that the test does not wait half a minute.
CHECK_S = 0.25
PATIENCE_S = CHECK_S * (consumer_watchdog.BAD_CHECKS + 1)
BATCH = 4
QUEUE = "poll.recorder\x06\x165"


def watched(cluster: Cluster, *words: str, targets: int = 20, seconds: float = 0.0) -> Program:
    """Start a worker that polls and loads the faults of `wedge`."""
    cluster.valkey.start()
    cluster.add_targets(targets, 1.0, seconds)
    cluster.start_beat()
    env = {
        wedge.FILE_VARIABLE: str(cluster.directory / "wedge"),
        wedge.CHECK_VARIABLE: str(CHECK_S),
    }
    worker = cluster.start_worker("-I", "tests.acceptance.wedge", *words, **env)
    soon(lambda: cluster.record.polls(), 30, "it polls")
    return worker


def strike(cluster: Cluster, fault: str) -> float:
    (cluster.directory / "wedge.new").write_text(fault)
    (cluster.directory / "wedge.new").rename(cluster.directory / "wedge")
    return time.time()


def stalls(cluster: Cluster) -> int:
    return overview_reader.read(cluster.services.redis, cluster.services.keys).totals.get(
        "worker_stalls", 0
    )


def test_a_consumer_that_silently_stopped_is_restarted(tmp_path: Path) -> None:
    """The process polls on, and the reason is in the events and the counters."""
    with Cluster(tmp_path) as cluster:
        worker = watched(cluster)
        strike(cluster, "drop")
        soon(lambda: cluster.valkey.client.llen(QUEUE), 10, "batches wait")
        soon(lambda: stalls(cluster) == 1, PATIENCE_S + 5, "the stall is counted")
        cluster.all_polled(time.time(), 15)
        assert worker.runs
        assert "its consumer is started again" in worker.text()
        printed = cluster.run("events", "--kind", "worker_stalled").stdout
        assert "it takes no batches although some wait and it has room" in printed
        assert "workers stood still 1 time" in cluster.run("status").stdout
        cluster.checked()


def test_a_worker_whose_hub_is_blocked_ends_for_its_supervisor(tmp_path: Path) -> None:
    """The event has the reason, and the targets of the worker are due again at once."""
    with Cluster(tmp_path, POLLER_BATCH_SIZE=str(BATCH)) as cluster:
        worker = watched(cluster)
        strike(cluster, "block")
        assert worker.wait(PATIENCE_S + 10) == EXIT_CODE
        assert "its main loop does not answer; the process ends" in worker.text()
        assert stalls(cluster) == 1
        # Only a batch that Redis had sent to the stuck connection waits for its lease.
        assert cluster.valkey.client.keys("poll.*") == []
        assert cluster.services.board.sizes()[2] <= BATCH
        cluster.sound()


def test_a_worker_that_is_idle_busy_frozen_or_without_redis_is_left_alone(tmp_path: Path) -> None:
    """Each state lasts longer than a stalled worker would live."""
    with Cluster(tmp_path, POLLER_BATCH_SIZE="2") as cluster:
        worker = watched(cluster, "-c", "1", targets=8, seconds=0.8)
        soon(lambda: cluster.valkey.client.llen(QUEUE), 10, "batches wait while it is busy")
        time.sleep(PATIENCE_S)
        worker.freeze()
        time.sleep(PATIENCE_S)
        worker.thaw()
        cluster.valkey.kill()
        time.sleep(PATIENCE_S)
        cluster.valkey.start()
        cluster.all_polled(time.time(), 40)
        for beat in cluster.beats:
            beat.terminate()
            beat.wait(10)
        soon(lambda: cluster.valkey.client.llen(QUEUE) == 0, 20, "the worker is idle")
        time.sleep(PATIENCE_S)
        assert worker.runs
        assert "stood still" not in worker.text()
        assert "worker_stalled" not in worker.text()
        assert stalls(cluster) == 0
