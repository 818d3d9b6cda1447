"""Domains come and go while real workers run.

A notification takes effect at once and a lost one is made up for. A domain without a worker is
reported, never queued, and polled once a worker starts.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from poller import errors, wakeups
from poller.cli.up import embedded_server
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.state.cluster import event_stream, overview_reader
from poller.state.keys import ROUTINE_MARK
from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.records import Poll
from tests.conftest import missing

pytestmark = [pytest.mark.alone, pytest.mark.timeout(120)]

QUEUE = "poll.recorder"
#: The default is 30 s, with which only a notification is quick.
OFTEN_S = "1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A leader, a worker in the DMZ, and a worker on rack 1 that refreshes its queues every
    second.
    """
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    with Cluster(tmp_path_factory.mktemp("domains")) as made:
        made.valkey.start()
        made.start_beat()
        made.start_worker(POLLER_WORKER_TAGS="zone=dmz")
        made.start_worker(POLLER_WORKER_TAGS="rack=1", POLLER_DOMAINS_S=OFTEN_S)
        soon(lambda: made.leader() and len(announced(made)) == 2, 30, "a leader and two workers")
        yield made


def announced(cluster: Cluster) -> dict[str, Worker]:
    """Return the workers by name, from their last heartbeats."""
    view = overview_reader.read(cluster.services.redis, cluster.services.keys)
    return {worker.name: worker for worker in view.workers}


def queues(cluster: Cluster, worker: Program) -> list[str]:
    """Return the queues of polls that a worker takes from; that of its jobs stays the same."""
    found = announced(cluster).get(worker.name)
    return [queue for queue in found.queues if queue.startswith("poll.")] if found else []


def add(cluster: Cluster, name: str, require: str) -> None:
    """Add a device by command, as an operator would."""
    words = [
        "device",
        "add",
        name,
        "127.0.0.1",
        "--require",
        require,
        "--collector",
        "recorder",
        "--interval",
        "1s",
    ]
    done = cluster.run(*words, "--timeout", "900ms", "-o", f"word={name}")
    assert done.returncode == 0, done.stderr


def remove(cluster: Cluster, name: str) -> None:
    done = cluster.run("device", "rm", name, "--yes")
    assert done.returncode == 0, done.stderr


def polls(cluster: Cluster, device: str) -> list[Poll]:
    return [poll for poll in cluster.record.polls() if poll.word == device]


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.run("status", "--json").stdout)
    return found


def test_a_worker_with_a_wrong_tag_does_not_start(cluster: Cluster) -> None:
    """The error names the key that was given twice."""
    refused = cluster.start_worker(POLLER_WORKER_TAGS="zone=dmz,zone=lan")
    assert refused.wait(20) != 0
    assert (
        'error[P210]: worker_tags: the key "zone" is given twice, with dmz and lan'
        in refused.text()
    )


def test_a_domain_comes_and_goes_with_its_target(cluster: Cluster) -> None:
    """Only the matching worker polls, within a second of the notification, and leaves the queue at
    the end.
    """
    heard: list[float] = []
    done = threading.Event()
    wakeups.listen(
        cluster.valkey.client,
        cluster.services.keys.domains,
        lambda _: heard.append(time.time()),
        done,
    )
    soon(lambda: heard, 5, "the subscription")
    fitting, other = cluster.workers[:2]
    add(cluster, "fw", "zone=dmz")
    soon(lambda: len(heard) == 2, 10, "the leader announces the new domain")
    first = soon(lambda: polls(cluster, "fw"), 5, "the first poll")[0]
    print(f"polled {1000 * (first.start - heard[1]):.0f} ms after the leader's notification")
    assert 0 < first.start - heard[1] < 1
    soon(lambda: len(polls(cluster, "fw")) >= 3, 10, "more of them")
    assert {poll.pid for poll in polls(cluster, "fw")} == {fitting.pid}
    assert queues(cluster, fitting) == [f"{QUEUE};zone=dmz"]
    assert queues(cluster, other) == []
    remove(cluster, "fw")
    soon(lambda: len(heard) == 3, 10, "the leader announces that it is gone")
    soon(
        lambda: not queues(cluster, fitting),
        max(0, heard[2] + 1 - time.time()),
        "its worker leaves the queue",
    )
    assert (
        f"queue_left [poller.workers.process.subscriptions] queue='{QUEUE};zone=dmz'"
        in fitting.text()
    )
    assert cluster.services.board.queues() == []
    cluster.sound()
    done.set()


def test_a_lost_notification_is_made_up_for(cluster: Cluster) -> None:
    """A refresh every second (30 by default), or after a broken subscription, finds the change."""
    client, keys, (quiet, often) = cluster.valkey.client, cluster.services.keys, cluster.workers[:2]
    client.sadd(keys.queues, f"{QUEUE};rack=1", f"{QUEUE};zone=dmz")  # without a notification
    soon(lambda: queues(cluster, often) == [f"{QUEUE};rack=1"], 3, "the periodic refresh finds it")
    assert queues(cluster, quiet) == []
    client.client_kill_filter(_type="pubsub")
    soon(
        lambda: queues(cluster, quiet) == [f"{QUEUE};zone=dmz"], 5, "the new subscription finds it"
    )
    client.delete(keys.queues)
    soon(lambda: not queues(cluster, often), 3, "the periodic refresh drops both")


def test_a_deleted_list_of_queues_is_restored(cluster: Cluster) -> None:
    """The leader restores the list of queues from the targets."""
    add(cluster, "rack", "rack=1")
    soon(lambda: polls(cluster, "rack"), 5, "it is polled")
    cluster.valkey.client.delete(cluster.services.keys.queues)
    soon(lambda: cluster.services.board.queues() == [f"{QUEUE};rack=1"], 3, "the list is back")
    deleted = time.time()
    soon(
        lambda: [poll for poll in polls(cluster, "rack") if poll.start > deleted],
        5,
        "it is polled again",
    )
    remove(cluster, "rack")


def test_an_unroutable_domain_is_reported_and_polled_when_a_worker_starts(
    cluster: Cluster,
) -> None:
    """The first poll comes within two seconds of the worker's first heartbeat; a killed worker is
    reported within fifteen.
    """
    client, queue = cluster.valkey.client, f"{QUEUE};zone=lab"
    add(cluster, "lab", "zone=lab")
    soon(lambda: cluster.services.board.queues() == [queue], 5, "the leader places it")
    [found] = status(cluster)["unroutable"]
    assert (found["queue"], found["targets"], found["needs"]) == (queue, 1, "tag zone=lab")
    assert found["reason"] == "needs tag zone=lab; 2 workers live, none has it"
    refused = cluster.run("poll", "lab")
    assert "needs tag zone=lab; 2 workers live, none has it" in refused.stderr
    assert client.llen(queue) == client.llen(queue + ROUTINE_MARK) == 0
    assert polls(cluster, "lab") == []
    worker = cluster.start_worker(POLLER_WORKER_TAGS="zone=lab")
    came = soon(
        lambda: announced(cluster).get(worker.name), 20, "the first heartbeat of the worker"
    )
    first = soon(lambda: polls(cluster, "lab"), 5, "the first poll")[0]
    took_s = first.start - came.started_ms / 1000
    print(f"polled {1000 * took_s:.0f} ms after the worker's first heartbeat")
    assert took_s < 2
    assert status(cluster)["unroutable"] == []
    soon(lambda: announced(cluster)[worker.name].polled_ms, 5, "its last poll is in the heartbeat")
    check_that_a_killed_worker_is_reported(cluster, worker)


def check_that_a_killed_worker_is_reported(cluster: Cluster, worker: Program) -> None:
    """Kill the worker, and check that the leader reports the loss in time."""
    worker.kill()
    killed = time.time()

    def lost() -> bool:
        entries = event_stream.newest(cluster.services.redis, cluster.services.keys, 50)
        return any(
            e.event and e.event.kind is Kind.WORKER_LOST and worker.name in e.event.message
            for e in entries
        )

    soon(lost, 15, "the leader reports the loss")
    print(f"reported after {time.time() - killed:.1f} s")
    loads = {load["queue"]: load["workers"] for load in status(cluster)["loads"]}
    assert loads == {f"{QUEUE};zone=lab": 0}
