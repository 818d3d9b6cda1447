"""`poller worker` starts its processes, replaces them when they grow, and stops without a loss."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry
from tests.acceptance import recorder
from tests.acceptance.cluster import Cluster, soon

pytestmark = pytest.mark.timeout(120)


def registered(cluster: Cluster) -> dict[str, Worker]:
    """Return the registered workers by the first part of their names."""
    return {
        each.name.partition("@")[0]: each
        for each in worker_registry.registered(cluster.services.redis, cluster.services.keys)
    }


def pollers(cluster: Cluster, since: float) -> set[int]:
    return {poll.pid for poll in cluster.record.polls(since)}


def test_processes_are_restarted_replaced_and_stopped(tmp_path: Path) -> None:
    """One process is killed and one exceeds its limit while others go on; after SIGTERM no target
    waits for a lease.
    """
    words = (
        "--processes",
        "2",
        "--concurrency",
        "3",
        "--tags",
        "zone=dmz",
        "--name",
        "edge",
        "--memory-limit",
        "300M",
    )
    leases = {
        "POLLER_LEASE_MARGIN_S": "3",
        "POLLER_SPOOL_PATIENCE_S": "0.3",
        "POLLER_QUEUE_WAIT_S": "3",
    }
    with Cluster(tmp_path, POLLER_BATCH_SIZE="4", POLLER_WORKER_DRAIN_S="1", **leases) as cluster:
        cluster.valkey.start()
        cluster.add_targets(60, 1.0, 0.2)
        cluster.start_beat()
        workers = cluster.start_supervisor(*words)
        soon(lambda: len(pollers(cluster, 0)) == 2, 30, "both poll")
        soon(
            lambda: set(registered(cluster)) == {"edge1", "edge2"},
            10,
            "both are registered by name",
        )
        assert [(each.slots, each.tags) for each in registered(cluster).values()] == [
            (3, {"zone": "dmz"})
        ] * 2

        victim, other = pollers(cluster, 0)
        os.kill(victim, signal.SIGKILL)
        killed = time.time()
        soon(
            lambda: "was ended by SIGKILL; starting it again" in workers.text(),
            5,
            "the reason is printed",
        )
        soon(
            lambda: len(pollers(cluster, killed)) >= 2 and other in pollers(cluster, killed),
            20,
            "both poll again",
        )

        Path(str(tmp_path / "polls") + recorder.HOARD).touch()
        soon(
            lambda: "MiB, more than its limit of 300 MiB: it is replaced" in workers.text(),
            10,
            "the reason is printed",
        )
        replaced = time.time() + 2
        soon(lambda: len(pollers(cluster, replaced)) == 2, 30, "both poll again")
        cluster.all_polled(replaced, 10)
        workers.terminate()
        assert workers.wait(15) == 0, workers.text()
        assert cluster.services.board.sizes()[2] == 0, "a target waits for its lease"
        assert "Traceback" not in workers.text()
        assert "edge1    | " in workers.text()
        cluster.sound()


def test_a_second_signal_ends_all_processes_and_blames_no_collector(tmp_path: Path) -> None:
    """Running polls come back with their leases."""
    with Cluster(tmp_path, POLLER_WORKER_DRAIN_S="60") as cluster:
        cluster.valkey.start()
        cluster.add_targets(20, 30.0, 20.0)
        cluster.start_beat()
        workers = cluster.start_supervisor("--processes", "1", POLLER_LOG_FORMAT="json")
        soon(lambda: cluster.record.polls(), 30, "it polls")
        workers.terminate()
        soon(lambda: "may finish" in workers.text(), 5, "running polls may finish")
        workers.terminate()
        assert workers.wait(5) == 1
        assert list((tmp_path / "home" / "flights").iterdir()) == []
        assert '{"process": "poller1", ' in workers.text()


@pytest.mark.parametrize("as_up", [False, True], ids=["worker", "up"])
def test_a_wrong_setting_ends_the_command(tmp_path: Path, as_up: bool) -> None:
    """The command ends with the code of a wrong setting: `up` before it starts anything, the
    supervisor after each process has logged the mistake once.
    """
    with Cluster(tmp_path, POLLER_SINKS="nowhere") as cluster:
        cluster.valkey.start()
        program = (
            cluster.start_up(workers=2) if as_up else cluster.start_supervisor("--processes", "2")
        )
        assert program.wait(60) == 2, program.text()
        assert program.text().count('unknown sink "nowhere"') == (1 if as_up else 2)
        assert as_up or "no worker can run as it is configured" in program.text()
        assert "Traceback" not in program.text()
