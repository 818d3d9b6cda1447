"""Batches go home: to the worker that keeps the sessions of their devices, as long as it is there and has room."""

from __future__ import annotations

import pytest
import redis

from poller.beat import session_affinity
from poller.beat.session_affinity import Homes
from poller.beat.session_hosts import Hosts
from poller.bootstrap import Services
from poller.db import tables
from poller.db.inventory import devices, imports, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity
from poller.state.cluster.worker_registry import TWO_HEARTBEATS_MISSED_MS
from poller.state.keys import ROUTINE_MARK

QUEUE = "poll.routeros"
NOW = 1_800_000_000_000
DEVICES = 60


@pytest.fixture
def services(services: Services) -> Services:
    """Each device with two targets, one that keeps a session and one that does not."""
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
        name, seen_ms, 0, 0, 0, 0, queues=(QUEUE, "poll.snmp"), sessions=sessions, slots=slots
    )


WORKERS = [worker("w1"), worker("w2"), worker("w3")]


def ids_of(services: Services, collector: str = "routeros") -> dict[str, str]:
    """The address of each target, by id."""
    with services.engine.connect() as conn:
        query = (
            tables.targets.join(tables.devices)
            .select()
            .with_only_columns(tables.targets.c.id, tables.devices.c.address)
        )
        rows = conn.execute(query.where(tables.targets.c.collector == collector))
        return {str(key): str(address) for key, address in rows}


def ready(services: Services, living: list[Worker] | None = None) -> Homes:
    """A leader that saw these workers and has read where the devices are."""
    hosts, asked = Hosts(), []
    made = Homes(services, hosts, lambda: asked.append(True))
    made.look(WORKERS if living is None else living, NOW)
    if asked:
        hosts.refresh(services.engine)
    made.narrowed({QUEUE: 32})
    return made


def sent(made: Homes, ids: list[str], size: int = 64, queue: str = QUEUE) -> dict[str, list[str]]:
    """Where each of these would be published to."""
    found: dict[str, list[str]] = {}
    for name, batch in made.batches(queue, ids, size):
        assert len(batch) <= size
        found.setdefault(name, []).extend(batch)
    assert sorted(i for part in found.values() for i in part) == sorted(ids), (
        "a target was lost or doubled"
    )
    return found


def test_targets_go_to_the_own_queue_of_their_hosts_home(services: Services) -> None:
    addresses = ids_of(services)
    found = sent(ready(services), list(addresses))
    for name, part in found.items():
        homes_of_part = {affinity.preferred_worker(addresses[i], ["w1", "w2", "w3"]) for i in part}
        assert name == affinity.own_queue(QUEUE, *homes_of_part)
    assert len(found) == 3


def test_queues_without_sessions_and_single_workers_are_left_alone(services: Services) -> None:
    ids = list(ids_of(services, "snmp"))
    assert sent(ready(services), ids, queue="poll.snmp") == {"poll.snmp": ids}
    ids = list(ids_of(services))
    assert sent(ready(services, [worker("w1")]), ids) == {QUEUE: ids}
    old = [worker("w1", sessions=()), worker("w2", sessions=())]
    assert sent(ready(services, old), ids) == {QUEUE: ids}


def test_hosts_nobody_knows_yet_go_to_all(services: Services) -> None:
    """A database that is away costs logins, and no polls."""
    made = Homes(services, Hosts())
    made.look(WORKERS, NOW)
    made.narrowed({QUEUE: 32})
    ids = list(ids_of(services))
    assert sent(made, ids) == {QUEUE: ids}


def test_what_finds_no_room_at_home_goes_to_all(services: Services) -> None:
    """One batch may wait for each slot of a worker."""
    made = ready(services, [worker("w1", slots=1), worker("w2", slots=2)])
    found = sent(made, list(ids_of(services)), size=5)
    assert len(found[f"{QUEUE}~w1"]) == 5
    assert len(found[f"{QUEUE}~w2"]) == 10
    assert len(found[QUEUE]) == DEVICES - 15
    assert set(sent(made, list(ids_of(services)))) == {QUEUE}, (
        "what was published a moment ago does not count"
    )


def test_what_waits_in_own_queues_counts_as_waiting(
    services: Services, redis_client: redis.Redis
) -> None:
    """The workers' room is the same as before, and what is urgent always finds some."""
    made = ready(services)
    redis_client.lpush(f"{QUEUE}~w1{ROUTINE_MARK}", *"abcd")
    redis_client.lpush(f"{QUEUE}~w2", *"ef")
    assert made.narrowed({QUEUE: 32, "poll.snmp": 8}) == {QUEUE: 26, "poll.snmp": 8}
    assert made.narrowed({QUEUE: 4}) == {QUEUE: 1}
    assert f"{QUEUE}~w1" not in sent(made, list(ids_of(services))), "its four slots are taken"


SILENT = worker("w1", seen_ms=NOW - TWO_HEARTBEATS_MISSED_MS)
OTHERWISE_BUSY = Worker("w1", NOW, 0, 0, 0, 0, queues=("poll.snmp",), sessions=("routeros",))


@pytest.mark.parametrize(
    "left", [[], [SILENT], [OTHERWISE_BUSY]], ids=["gone", "silent", "serving it no more"]
)
def test_what_waits_for_a_worker_that_is_gone_goes_to_all(
    services: Services, redis_client: redis.Redis, left: list[Worker]
) -> None:
    """At once, what is urgent stays urgent, and a leader that has just begun knows where to look."""
    sent(ready(services), list(ids_of(services)))
    redis_client.lpush(f"{QUEUE}~w1{ROUTINE_MARK}", "first", "second")
    redis_client.lpush(f"{QUEUE}~w1", "urgent")
    redis_client.lpush(f"{QUEUE}~w2{ROUTINE_MARK}", "of another")
    successor = Homes(services, Hosts())
    successor.look([*left, *WORKERS[1:]], NOW)
    assert redis_client.lrange(QUEUE + ROUTINE_MARK, 0, -1) == ["first", "second"][::-1]
    assert redis_client.lrange(QUEUE, 0, -1) == ["urgent"]
    assert redis_client.llen(f"{QUEUE}~w2{ROUTINE_MARK}") == 1
    assert f"{QUEUE}~w1" not in sent(successor, list(ids_of(services)))


def test_workers_that_do_not_come_back_are_forgotten(
    services: Services, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of containers are not kept for ever."""
    made = ready(services)
    sent(made, list(ids_of(services)))
    assert redis_client.smembers(services.keys.own) == {f"{QUEUE}~w{n}" for n in (1, 2, 3)}
    made.look(WORKERS[1:], NOW)
    assert redis_client.scard(services.keys.own) == 3
    monkeypatch.setattr(session_affinity, "FORGET_AFTER_S", -1.0)
    made.look(WORKERS[1:], NOW)
    assert redis_client.smembers(services.keys.own) == {f"{QUEUE}~w{n}" for n in (2, 3)}


def test_hosts_follow_the_inventory(services: Services) -> None:
    """A moved device has another home, a removed one none; other collectors are never read."""
    hosts = Hosts()
    assert hosts.want({"routeros"})
    hosts.refresh(services.engine)
    assert not hosts.want({"routeros"})
    ids = {address: int(key) for key, address in ids_of(services).items()}
    assert hosts.of(ids["10.0.0.1"]) == "10.0.0.1"
    assert hosts.of(int(next(iter(ids_of(services, "snmp"))))) == ""
    devices.edit(services.engine, "d1", DeviceDraft("d1", "10.9.9.9"))
    targets.remove(services.engine, "d2", "r")
    hosts.refresh(services.engine)
    assert (hosts.of(ids["10.0.0.1"]), hosts.of(ids["10.0.0.2"]), hosts.of(ids["10.0.0.3"])) == (
        "10.9.9.9",
        "",
        "10.0.0.3",
    )
