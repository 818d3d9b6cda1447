"""A worker whose consumer stands still recovers or ends, says why and is counted; one that is well is left alone."""

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

#: Shorter looks than a worker's own, so that nobody has to wait half a minute.
CHECK_S = 0.25
PATIENCE_S = CHECK_S * (consumer_watchdog.BAD_CHECKS + 1)
BATCH = 4
QUEUE = "poll.recorder\x06\x165"


def watched(cluster: Cluster, *words: str, targets: int = 20, seconds: float = 0.0) -> Program:
    """A worker that polls and can be wedged."""
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


def strike(cluster: Cluster, deed: str) -> float:
    (cluster.directory / "wedge.new").write_text(deed)
    (cluster.directory / "wedge.new").rename(cluster.directory / "wedge")
    return time.time()


def stalls(cluster: Cluster) -> int:
    return overview_reader.read(cluster.services.redis, cluster.services.keys).totals.get(
        "worker_stalls", 0
    )


def test_a_consumer_that_silently_stopped_is_started_again(tmp_path: Path) -> None:
    """The process lives on, polls on, and the reason is in the events and the counters."""
    with Cluster(tmp_path) as cluster:
        worker = watched(cluster)
        strike(cluster, "drop")
        soon(lambda: cluster.valkey.client.llen(QUEUE), 10, "batches wait")
        soon(lambda: stalls(cluster) == 1, PATIENCE_S + 5, "it is noticed, and counted")
        began = time.time()
        cluster.all_polled(began, 15)
        assert worker.runs
        assert "its consumer is started again" in worker.text()
        said = cluster.run("events", "--kind", "worker_stalled").stdout
        assert "it takes no batches although some wait and it has room" in said
        assert "workers stood still 1 time" in cluster.run("status").stdout
        cluster.checked()


def test_a_worker_that_cannot_be_helped_ends_for_its_supervisor(tmp_path: Path) -> None:
    """With the reason; and what it held is due again at once."""
    with Cluster(tmp_path, POLLER_BATCH_SIZE=str(BATCH)) as cluster:
        worker = watched(cluster)
        strike(cluster, "block")
        assert worker.wait(PATIENCE_S + 10) == EXIT_CODE
        assert "its main loop does not answer; the process ends" in worker.text()
        assert stalls(cluster) == 1
        # A batch that Redis had handed to the stuck connection is the only one that waits for its lease.
        assert cluster.valkey.client.keys("poll.*") == []
        assert cluster.services.board.sizes()[2] <= BATCH
        cluster.sound()


def test_a_worker_that_is_idle_busy_frozen_or_without_redis_is_left_alone(tmp_path: Path) -> None:
    """Each of these for longer than a wedged one would live."""
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
        soon(lambda: cluster.valkey.client.llen(QUEUE) == 0, 20, "it has nothing left to do")
        time.sleep(PATIENCE_S)
        assert worker.runs
        assert "stood still" not in worker.text()
        assert "worker_stalled" not in worker.text()
        assert stalls(cluster) == 0
