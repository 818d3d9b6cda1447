"""A drained worker finishes what it has and takes nothing new; nothing is lost, and others poll."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry
from tests.acceptance.cluster import Cluster, Program, soon

pytestmark = pytest.mark.timeout(150)

#: The targets of a lost batch would be missing for longer than the test waits.
LEASES = {"POLLER_LEASE_MARGIN_S": "60", "POLLER_QUEUE_WAIT_S": "60"}


def announced(cluster: Cluster, worker: Program) -> Worker | None:
    """The newest heartbeat of a worker."""
    services = cluster.services
    found = worker_registry.registered(services.redis, services.keys)
    return next((each for each in found if each.name == worker.name), None)


def pollers(cluster: Cluster, since: float) -> set[int]:
    return {poll.pid for poll in cluster.record.polls(since)}


def drain(cluster: Cluster, worker: Program, *words: str) -> float:
    """Drain a worker by command until it has finished, and return when."""
    done = cluster.run("workers", "drain", worker.name, "--wait", "20", *words)
    assert done.returncode == 0, done.stderr
    return time.time()


def nothing_under_way(cluster: Cluster) -> bool:
    return cluster.services.board.sizes()[2] == 0


def test_a_drained_worker_leaves_its_targets_to_others(tmp_path: Path) -> None:
    """Its restart does not end the drain; the last worker is drained only by force; all of them
    take work again when they are resumed.
    """
    with Cluster(tmp_path, POLLER_BATCH_SIZE="4", **LEASES) as cluster:
        cluster.valkey.start()
        cluster.add_targets(60, 1.0, 0.3)
        cluster.start_beat()
        first, second = cluster.start_worker("-c", "8"), cluster.start_worker("-c", "8")
        soon(lambda: pollers(cluster, 0) == {first.pid, second.pid}, 30, "both poll")

        drained = drain(cluster, first, "--reason", "new kernel")
        found = announced(cluster, first)
        assert found is not None
        assert (found.queues, found.in_flight, found.unfinished) == ([], 0, 0)
        cluster.all_polled(drained, 10)
        cluster.all_polled(time.time(), 10)
        assert pollers(cluster, drained) == {second.pid}

        first.terminate()
        assert first.wait(15) == 0, first.text()
        again = cluster.start_worker("-c", "8", "--hostname", first.name)
        again.name = first.name
        soon(lambda: (seen := announced(cluster, again)) and seen.drain, 20, "still drained")
        cluster.all_polled(time.time(), 10)
        assert pollers(cluster, drained) == {second.pid}

        refused = cluster.run("workers", "drain", second.name)
        assert refused.returncode == 2
        assert "no other worker serves" in refused.stderr
        drained = drain(cluster, second, "--force")
        soon(lambda: nothing_under_way(cluster), 5, "queued batches are handed back")
        assert pollers(cluster, drained) == set()
        why = cluster.run("why", "d0").stdout
        assert "was drained by" in why

        resumed = time.time()
        done = cluster.run("workers", "resume", first.name, second.name)
        assert done.returncode == 0, done.stderr
        cluster.all_polled(resumed, 10)
        soon(lambda: pollers(cluster, resumed) == {again.pid, second.pid}, 10, "both poll again")
        cluster.never_doubled(0)
        cluster.sound()
