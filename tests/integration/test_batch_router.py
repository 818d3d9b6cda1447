"""Batches go to the worker that knows their targets, while it takes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import redis

from poller import errors
from poller.beat.routing import own_queues
from poller.beat.routing.batch_router import BatchRouter
from poller.beat.routing.session_hosts import SessionHosts
from poller.bootstrap import Services
from poller.db import tables
from poller.db.inventory import devices, imports, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity, home_table, own_queue_pace
from poller.state.cluster import worker_queues
from poller.state.cluster.worker_registry import (
    ONE_HEARTBEAT_MISSED_MS,
    TWO_HEARTBEATS_MISSED_MS,
)
from poller.state.keys import ROUTINE_MARK

QUEUE = "poll.routeros"
NOW = 1_800_000_000_000
DEVICES = 60


@pytest.fixture
def services(services: Services) -> Services:
    """Devices with two targets each, one that holds a session and one that does not."""
    draft = TargetDraft("r", "routeros", {}, interval_ms=60_000, timeout_ms=5_000)
    other = TargetDraft("s", "snmp", {}, interval_ms=60_000, timeout_ms=5_000)
    rows = [
        imports.Row(DeviceDraft(f"d{n}", f"10.0.0.{n}"), [draft, other]) for n in range(DEVICES)
    ]
    imports.apply_import(services.engine, rows)
    return services


def worker(
    name: str, slots: int = 4, seen_ms: int = NOW, sessions: tuple[str, ...] = ("routeros",)
) -> Worker:
    return Worker(
        name,
        seen_ms,
        0,
        0,
        0,
        0,
        queues=(QUEUE, "poll.snmp"),
        sessions=sessions,
        own_queues=True,
        slots=slots,
    )


WORKERS = [worker("w1"), worker("w2"), worker("w3")]


def ids_of(services: Services, collector: str = "routeros") -> dict[int, str]:
    """The address of each target, by id."""
    with services.engine.connect() as conn:
        query = (
            tables.targets.join(tables.devices)
            .select()
            .with_only_columns(tables.targets.c.id, tables.devices.c.address)
        )
        rows = conn.execute(query.where(tables.targets.c.collector == collector))
        return {int(key): str(address) for key, address in rows}


def ready(services: Services, living: list[Worker] | None = None) -> BatchRouter:
    """The affinity of a leader that knows these workers and the addresses of the devices."""
    hosts = SessionHosts()
    made = BatchRouter(services, hosts)
    needs_addresses = made.refresh(WORKERS if living is None else living, NOW)
    if needs_addresses:
        hosts.refresh(services.engine)
    made.remaining({QUEUE: 32})
    return made


def published(
    made: BatchRouter, ids: list[int], size: int = 64, queue: str = QUEUE
) -> dict[str, list[int]]:
    """The targets that would be published to each queue."""
    by_queue: dict[str, list[int]] = {}
    for name, batch in made.batches(queue, ids, size):
        assert len(batch) <= size
        by_queue.setdefault(name, []).extend(batch)
    all_ids = [target_id for part in by_queue.values() for target_id in part]
    assert sorted(all_ids) == sorted(ids), "a target was lost or doubled"
    return by_queue


def test_targets_go_to_the_queue_of_the_worker_of_their_host(services: Services) -> None:
    """Every worker gets the targets of the hosts that are assigned to it."""
    addresses = ids_of(services)
    by_queue = published(ready(services), list(addresses))
    for name, part in by_queue.items():
        workers = {affinity.preferred_worker(addresses[i], ["w1", "w2", "w3"]) for i in part}
        assert name == affinity.own_queue(QUEUE, *workers)
    assert len(by_queue) == 3


def test_targets_without_sessions_go_to_the_queue_of_their_home(services: Services) -> None:
    """No address is needed; each target has the home that its id says, with enough of them."""
    ids = list(ids_of(services, "snmp"))
    by_queue = published(ready(services), ids, queue="poll.snmp")
    homes = home_table.home_table((("w1", 4), ("w2", 4), ("w3", 4)))
    assert len(by_queue) == 3
    for name, part in by_queue.items():
        assert {affinity.own_queue("poll.snmp", homes.home(each)) for each in part} == {name}


def test_batches_of_a_single_worker_or_of_old_workers_go_to_the_shared_queue(
    services: Services, redis_client: redis.Redis
) -> None:
    """A single worker has no queue of its own in Redis, either."""
    for collector in ("snmp", "routeros"):
        queue = f"poll.{collector}"
        ids = list(ids_of(services, collector))
        assert published(ready(services, [worker("w1")]), ids, queue=queue) == {queue: ids}
        old = [replace(worker(name, sessions=()), own_queues=False) for name in ("w1", "w2")]
        assert published(ready(services, old), ids, queue=queue) == {queue: ids}
    assert not redis_client.exists(services.keys.own)


@pytest.mark.parametrize(
    "trouble",
    [
        {"store_error": "no database"},
        {"rate_limit": "1/m"},
        {"seen_ms": NOW - ONE_HEARTBEAT_MISSED_MS},
    ],
    ids=["without a database", "limited", "silent"],
)
def test_a_worker_in_trouble_keeps_its_targets_and_gets_no_batches(
    services: Services, trouble: dict[str, Any]
) -> None:
    """Its part goes to the shared queue; the part of the other worker stays as it was."""
    ids = list(ids_of(services, "snmp"))
    both = [worker("w1"), worker("w2")]
    before = published(ready(services, both), ids, queue="poll.snmp")
    hurt = [replace(both[0], **trouble), both[1]]
    after = published(ready(services, hurt), ids, queue="poll.snmp")
    assert after["poll.snmp~w2"] == before["poll.snmp~w2"]
    assert sorted(after["poll.snmp"]) == sorted(before["poll.snmp~w1"])


def test_targets_keep_their_workers_while_none_has_a_database(services: Services) -> None:
    """The part of each worker stays as it was."""
    ids = list(ids_of(services, "snmp"))
    both = [worker("w1"), worker("w2")]
    before = published(ready(services, both), ids, queue="poll.snmp")
    hurt = [replace(each, store_error="no database") for each in both]
    assert published(ready(services, hurt), ids, queue="poll.snmp") == before


def test_batches_that_a_living_worker_does_not_take_move_to_the_shared_queue(
    services: Services, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker then gets one batch at a time, until it takes one."""
    made = ready(services)
    ids = list(ids_of(services))
    redis_client.lpush(f"{QUEUE}~w1{ROUTINE_MARK}", "first", "second")
    made.remaining({QUEUE: 32})
    made.refresh(WORKERS, NOW)
    assert redis_client.llen(f"{QUEUE}~w1{ROUTINE_MARK}") == 2, "they do not wait for long yet"
    monkeypatch.setattr(own_queue_pace, "STALLED_S", 0.0)
    made.remaining({QUEUE: 32})
    made.refresh(WORKERS, NOW)
    assert redis_client.lrange(QUEUE + ROUTINE_MARK, 0, -1) == ["second", "first"]
    assert len(published(made, ids, size=1)[f"{QUEUE}~w1"]) == 1


def test_a_refresh_that_fails_asks_for_the_addresses_next_time(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost connection in the middle of a refresh hides no new worker."""
    made = BatchRouter(services, SessionHosts())

    def away(*_: object) -> None:
        raise errors.StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(worker_queues, "own_depths", away)
        with pytest.raises(errors.StoreUnavailable):
            made.refresh(WORKERS, NOW)
    assert made.refresh(WORKERS, NOW)


def test_targets_with_an_unknown_address_go_to_the_shared_queue(services: Services) -> None:
    """Without a database there are more logins, but no lost polls."""
    made = BatchRouter(services, SessionHosts())
    made.refresh(WORKERS, NOW)
    made.remaining({QUEUE: 32})
    ids = list(ids_of(services))
    assert published(made, ids) == {QUEUE: ids}


def test_batches_beyond_the_slots_of_a_worker_go_to_the_shared_queue(services: Services) -> None:
    """One batch may wait for each slot of a worker."""
    made = ready(services, [worker("w1", slots=1), worker("w2", slots=2)])
    by_queue = published(made, list(ids_of(services)), size=5)
    assert len(by_queue[f"{QUEUE}~w1"]) == 5
    assert len(by_queue[f"{QUEUE}~w2"]) == 10
    assert len(by_queue[QUEUE]) == DEVICES - 15
    assert set(published(made, list(ids_of(services)))) == {QUEUE}, (
        "batches published a moment ago do not count"
    )


def test_batches_in_the_queues_of_single_workers_count_as_waiting(
    services: Services, redis_client: redis.Redis
) -> None:
    """Batches in own queues reduce the capacity of the shared queue, down to one batch for urgent
    targets.
    """
    made = ready(services)
    redis_client.lpush(f"{QUEUE}~w1{ROUTINE_MARK}", *"abcd")
    redis_client.lpush(f"{QUEUE}~w2", *"ef")
    assert made.remaining({QUEUE: 32, "poll.snmp": 8}) == {QUEUE: 26, "poll.snmp": 8}
    assert made.remaining({QUEUE: 4}) == {QUEUE: 1}
    assert f"{QUEUE}~w1" not in published(made, list(ids_of(services))), "its four slots are taken"


SILENT = worker("w1", seen_ms=NOW - TWO_HEARTBEATS_MISSED_MS)
SERVES_OTHERS = Worker("w1", NOW, 0, 0, 0, 0, queues=("poll.snmp",), sessions=("routeros",))


@pytest.mark.parametrize(
    "left", [[], [SILENT], [SERVES_OTHERS]], ids=["gone", "silent", "serving it no more"]
)
def test_batches_of_a_lost_worker_move_to_the_shared_queue(
    services: Services, redis_client: redis.Redis, left: list[Worker]
) -> None:
    """Moved batches keep their priority and their order; a new leader finds them in Redis."""
    published(ready(services), list(ids_of(services)))
    redis_client.lpush(f"{QUEUE}~w1{ROUTINE_MARK}", "first", "second")
    redis_client.lpush(f"{QUEUE}~w1", "urgent")
    redis_client.lpush(f"{QUEUE}~w2{ROUTINE_MARK}", "of another")
    successor = BatchRouter(services, SessionHosts())
    successor.refresh([*left, *WORKERS[1:]], NOW)
    assert redis_client.lrange(QUEUE + ROUTINE_MARK, 0, -1) == ["first", "second"][::-1]
    assert redis_client.lrange(QUEUE, 0, -1) == ["urgent"]
    assert redis_client.llen(f"{QUEUE}~w2{ROUTINE_MARK}") == 1
    assert f"{QUEUE}~w1" not in published(successor, list(ids_of(services)))


def test_queues_of_workers_that_do_not_come_back_are_forgotten(
    services: Services, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of containers do not pile up in Redis."""
    made = ready(services)
    published(made, list(ids_of(services)))
    names = {f"{queue}~w{n}" for n in (1, 2, 3) for queue in (QUEUE, "poll.snmp")}
    assert redis_client.smembers(services.keys.own) == names
    made.refresh(WORKERS[1:], NOW)
    assert redis_client.scard(services.keys.own) == 6
    monkeypatch.setattr(own_queues, "FORGET_AFTER_S", -1.0)
    made.refresh(WORKERS[1:], NOW)
    assert redis_client.smembers(services.keys.own) == {
        name for name in names if not name.endswith("w1")
    }


def test_hosts_follow_the_inventory(services: Services) -> None:
    """The cache follows edits and removals; targets of other collectors are not read."""
    hosts = SessionHosts()
    assert hosts.add_collectors({"routeros"})
    hosts.refresh(services.engine)
    assert not hosts.add_collectors({"routeros"})
    ids = {address: key for key, address in ids_of(services).items()}
    assert hosts.address_of(ids["10.0.0.1"]) == "10.0.0.1"
    assert hosts.address_of(next(iter(ids_of(services, "snmp")))) == ""
    devices.edit(services.engine, "d1", DeviceDraft("d1", "10.9.9.9"))
    targets.remove(services.engine, "d2", "r")
    hosts.refresh(services.engine)
    assert (
        hosts.address_of(ids["10.0.0.1"]),
        hosts.address_of(ids["10.0.0.2"]),
        hosts.address_of(ids["10.0.0.3"]),
    ) == (
        "10.9.9.9",
        "",
        "10.0.0.3",
    )
