"""A tick of the leader makes few round trips: a slow Redis delays it and does not stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest
import redis
from celery import Celery

from poller import app as application
from poller import bootstrap
from poller.beat import reconcile, round_opening, scheduler
from poller.bootstrap import Services
from poller.db import migrate
from poller.db.inventory import imports
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.state.cluster import worker_registry
from poller.state.keys import ROUTINE_MARK
from tests.acceptance.proxy import Proxy

TARGETS = 20
SESSIONS = ("routeros",)
#: Targets of the tick that declares all queues.
FIRST_TARGETS = 14
TICKS = 6


@pytest.fixture
def services(
    home: Path, network: Proxy, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Services]:
    """The services of a beat whose round trips are counted. It leads without a lock."""
    monkeypatch.setenv("POLLER_REDIS_URL", f"redis://127.0.0.1:{network.port}/0")
    monkeypatch.setenv("POLLER_LEADER_ELECTION", "false")
    made = bootstrap.services()
    migrate.upgrade(made.engine)
    yield made
    made.engine.dispose()


@pytest.fixture(params=["snmp", "routeros"])
def collector(request: pytest.FixtureRequest) -> str:
    """A collector without sessions and one with: batches go to the queues of single workers."""
    return str(request.param)


@pytest.fixture
def tick(
    services: Services,
    redis_client: redis.Redis,
    network: Proxy,
    collector: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[[int], int]:
    """A tick with so many targets due; returns its round trips. The scripts are loaded and the
    queues declared.
    """
    monkeypatch.setattr(round_opening, "HOUSEKEEPING_S", 0.0)  # in every tick
    draft = TargetDraft(collector, collector, {}, interval_ms=60_000, timeout_ms=5_000)
    rows = [imports.Row(DeviceDraft(f"d{n}", f"10.0.0.{n}"), [draft]) for n in range(TARGETS)]
    imports.apply_import(services.engine, rows)
    reconcile.reconcile(services.board, services.engine, "", services.board.now_ms())
    due = redis_client.zrange(services.keys.due(f"poll.{collector}"), 0, -1)
    assert len(due) == TARGETS

    app = Celery("poller")
    app.conf.update(application._configuration(services.settings))
    beat = scheduler.PollScheduler(app, lazy=True)
    beat._leader.try_to_lead()
    waiting = iter(due)

    def one_tick(count: int) -> int:
        for name in ("w1", "w2"):
            worker = Worker(
                name,
                0,
                1,
                0,
                0,
                0,
                queues=(f"poll.{collector}",),
                sessions=SESSIONS,
                own_queues=True,
                slots=16,
            )
            worker_registry.announce(redis_client, services.keys, worker)
        far_ms = services.board.now_ms() + 3_600_000
        scores = dict.fromkeys(due, far_ms)
        scores |= dict.fromkeys(islice(waiting, count), 1)
        redis_client.zadd(services.keys.due(f"poll.{collector}"), scores, xx=True)
        beat._wakeup.set()  # no pause after the tick
        before = network.round_trips
        beat.tick()
        count = network.round_trips - before
        for name in redis_client.smembers(services.keys.own):
            redis_client.delete(name, name + ROUTINE_MARK)  # the workers take their batches
        return count

    for count in (0, 0, FIRST_TARGETS):
        one_tick(count)
        beat._sql._hosts.refresh(services.engine)
    return one_tick


def test_a_tick_makes_at_most_three_round_trips(
    tick: Callable[[int], int], redis_client: redis.Redis, services: Services
) -> None:
    """Survey and housekeeping, claim, publication. Every batch is published."""
    counts = [tick(1) for _ in range(TICKS)]
    assert max(counts) == 3, counts
    assert redis_client.zcard(services.keys.inflight) == FIRST_TARGETS + TICKS


def test_a_tick_without_due_targets_makes_two(tick: Callable[[int], int]) -> None:
    counts = [tick(0) for _ in range(TICKS)]
    assert max(counts) == 2, counts


def test_each_call_of_a_worker_makes_one(
    services: Services, network: Proxy, redis_client: redis.Redis
) -> None:
    """Three for each batch, and one for a heartbeat."""
    board = services.board
    worker = Worker("w", 0, 1, 0, 0, 0)
    calls: dict[str, Callable[[], object]] = {
        "start": lambda: board.start("token", 0, "call", 1_000, [1, 2]),
        "hold": lambda: board.hold("token", 1_000, [1, 2]),
        "finish": lambda: board.finish("token", [], stats={"ok": 1}),
        "heartbeat": lambda: worker_registry.announce(
            services.redis, services.keys, worker, wake_leader=True
        ),
    }
    counts = {}
    for name, call in calls.items():
        call()  # loads the script
        before = network.round_trips
        call()
        counts[name] = network.round_trips - before
    assert counts == dict.fromkeys(calls, 1)
