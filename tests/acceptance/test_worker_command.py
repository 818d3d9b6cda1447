"""`poller worker`: as many processes as asked for, watched, replaced when they grow, and stopped without a loss."""

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


def seen(cluster: Cluster) -> dict[str, Worker]:
    """Living workers, by the first part of their names."""
    return {
        each.name.partition("@")[0]: each
        for each in worker_registry.registered(cluster.services.redis, cluster.services.keys)
    }


def pollers(cluster: Cluster, since: float) -> set[int]:
    return {poll.pid for poll in cluster.record.polls(since)}


def test_processes_are_restarted_replaced_and_stopped(tmp_path: Path) -> None:
    """One is killed, one grows beyond its limit, the others go on; SIGTERM ends all and nobody waits for a lease."""
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
        crew = cluster.start_crew(*words)
        soon(lambda: len(pollers(cluster, 0)) == 2, 30, "both poll")
        soon(
            lambda: set(seen(cluster)) == {"edge1", "edge2"},
            10,
            "both are announced, each by its name",
        )
        assert [(each.slots, each.tags) for each in seen(cluster).values()] == [
            (3, {"zone": "dmz"})
        ] * 2

        victim, other = pollers(cluster, 0)
        os.kill(victim, signal.SIGKILL)
        killed = time.time()
        soon(lambda: "was ended by SIGKILL; starting it again" in crew.text(), 5, "it is said why")
        soon(
            lambda: len(pollers(cluster, killed)) >= 2 and other in pollers(cluster, killed),
            20,
            "both poll again",
        )

        Path(str(tmp_path / "polls") + recorder.HOARD).touch()
        soon(
            lambda: "MiB, more than its limit of 300 MiB: it is replaced" in crew.text(),
            10,
            "it is said why",
        )
        replaced = time.time() + 2
        soon(lambda: len(pollers(cluster, replaced)) == 2, 30, "both poll again")
        cluster.all_polled(replaced, 10)
        crew.terminate()
        assert crew.wait(15) == 0, crew.text()
        assert cluster.services.board.sizes()[2] == 0, "something waits for its lease"
        assert "Traceback" not in crew.text()
        assert "edge1    | " in crew.text()
        cluster.sound()


def test_a_second_signal_ends_all_at_once_and_blames_nobody(tmp_path: Path) -> None:
    """What was under way comes back with its lease."""
    with Cluster(tmp_path, POLLER_WORKER_DRAIN_S="60") as cluster:
        cluster.valkey.start()
        cluster.add_targets(20, 30.0, 20.0)
        cluster.start_beat()
        crew = cluster.start_crew("--processes", "1", POLLER_LOG_FORMAT="json")
        soon(lambda: cluster.record.polls(), 30, "it polls")
        crew.terminate()
        soon(lambda: "may finish" in crew.text(), 5, "it lets them finish")
        crew.terminate()
        assert crew.wait(5) == 1
        assert list((tmp_path / "home" / "flights").iterdir()) == []
        assert '{"process": "poller1", ' in crew.text()


@pytest.mark.parametrize("as_up", [False, True], ids=["worker", "up"])
def test_a_mistake_that_no_restart_mends_ends_it(tmp_path: Path, as_up: bool) -> None:
    """Each process says it once, the whole ends as any command with a wrong setting does."""
    with Cluster(tmp_path, POLLER_SINKS="nowhere") as cluster:
        cluster.valkey.start()
        program = cluster.start_up(workers=2) if as_up else cluster.start_crew("--processes", "2")
        assert program.wait(60) == 2, program.text()
        assert program.text().count('unknown sink "nowhere"') == 2
        assert "no worker can run as it is configured" in program.text()
        assert "Traceback" not in program.text()
