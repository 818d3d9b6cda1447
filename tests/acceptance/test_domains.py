"""Domains come and go while real workers run: notes reach them at once, lost notes are made up for, and what nobody can
poll is never queued, is said to be so, and flows as soon as somebody can.
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
#: Beside the default of 30 s, at which only a note can be quick.
OFTEN_S = "1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A leader, a worker in the DMZ, and one on rack 1 that looks for queues every second."""
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
    """The workers by name, as they said last."""
    view = overview_reader.read(cluster.services.redis, cluster.services.keys)
    return {worker.name: worker for worker in view.workers}


def queues(cluster: Cluster, worker: Program) -> list[str]:
    found = announced(cluster).get(worker.name)
    return list(found.queues) if found else []


def add(cluster: Cluster, name: str, require: str) -> None:
    """As an operator would."""
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
    """It names the key that was given twice."""
    refused = cluster.start_worker(POLLER_WORKER_TAGS="zone=dmz,zone=lan")
    assert refused.wait(20) != 0
    assert (
        'error[P210]: worker_tags: the key "zone" is given twice, with dmz and lan'
        in refused.text()
    )


def test_a_domain_comes_and_goes_with_its_target(cluster: Cluster) -> None:
    """The worker that fits polls within a second of the note, nobody else does, and both leave the queue at the end."""
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
    soon(lambda: len(heard) == 2, 10, "the leader tells of the new domain")
    first = soon(lambda: polls(cluster, "fw"), 5, "the first poll")[0]
    print(f"polled {1000 * (first.start - heard[1]):.0f} ms after the leader's note")
    assert 0 < first.start - heard[1] < 1
    soon(lambda: len(polls(cluster, "fw")) >= 3, 10, "more of them")
    assert {poll.pid for poll in polls(cluster, "fw")} == {fitting.pid}
    assert queues(cluster, fitting) == [f"{QUEUE};zone=dmz"]
    assert queues(cluster, other) == []
    remove(cluster, "fw")
    soon(lambda: len(heard) == 3, 10, "the leader tells that it is gone")
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


def test_what_a_lost_note_missed_is_found(cluster: Cluster) -> None:
    """By the look every second (30 by default), or by the one that follows a subscription that broke."""
    client, keys, (quiet, often) = cluster.valkey.client, cluster.services.keys, cluster.workers[:2]
    client.sadd(keys.queues, f"{QUEUE};rack=1", f"{QUEUE};zone=dmz")  # and nobody is told
    soon(lambda: queues(cluster, often) == [f"{QUEUE};rack=1"], 3, "the backup look finds it")
    assert queues(cluster, quiet) == []
    client.client_kill_filter(_type="pubsub")
    soon(
        lambda: queues(cluster, quiet) == [f"{QUEUE};zone=dmz"], 5, "the new subscription finds it"
    )
    client.delete(keys.queues)
    soon(lambda: not queues(cluster, often), 3, "the backup look finds that they are gone")


def test_a_list_of_queues_that_somebody_deleted_is_made_anew(cluster: Cluster) -> None:
    """The leader knows from the targets what must be there."""
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


def test_an_unroutable_domain_is_explained_never_queued_and_flows_when_a_worker_comes(
    cluster: Cluster,
) -> None:
    """Within two seconds of the worker's first word; and when that one is killed, it is missed within fifteen."""
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
    came = soon(lambda: announced(cluster).get(worker.name), 20, "the worker says that it lives")
    first = soon(lambda: polls(cluster, "lab"), 5, "the first poll")[0]
    took_s = first.start - came.started_ms / 1000
    print(f"polled {1000 * took_s:.0f} ms after the worker's first word")
    assert took_s < 2
    assert status(cluster)["unroutable"] == []
    soon(lambda: announced(cluster)[worker.name].polled_ms, 5, "its last poll is told")
    noticed(cluster, worker)


def noticed(cluster: Cluster, worker: Program) -> None:
    """kill -9, and how long it takes until that is told."""
    worker.kill()
    killed = time.time()

    def lost() -> bool:
        entries = event_stream.newest(cluster.services.redis, cluster.services.keys, 50)
        return any(
            e.event and e.event.kind is Kind.WORKER_LOST and worker.name in e.event.message
            for e in entries
        )

    soon(lost, 15, "the leader tells that it is lost")
    print(f"missed after {time.time() - killed:.1f} s")
    loads = {load["queue"]: load["workers"] for load in status(cluster)["loads"]}
    assert loads == {f"{QUEUE};zone=lab": 0}
