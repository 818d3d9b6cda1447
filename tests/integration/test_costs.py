"""A collector with a cost gets smaller batches: a worker runs fewer of its polls at a time."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from poller.beat import dispatch, reconcile
from poller.beat.dispatch import Dispatcher
from poller.beat.routing.batch_router import BatchRouter
from poller.beat.routing.session_hosts import SessionHosts
from poller.bootstrap import Services
from poller.db.inventory import imports
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.domain.scheduling import capacity
from poller.state.cluster import worker_registry

NOW = 1_800_000_000_000
DUE = NOW + 60_000
QUEUES = {"poll.snmp": 3, "poll.olt": 3}


@pytest.fixture
def sent(services: Services, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Queue and size of each batch that is published; 300 targets of each collector are due."""
    drafts = [
        TargetDraft(name, name, {}, interval_ms=60_000, timeout_ms=5_000)
        for name in ("snmp", "olt")
    ]
    rows = [
        imports.Row(DeviceDraft(f"d{n}", f"10.0.{n // 200}.{n % 200}"), drafts) for n in range(300)
    ]
    imports.apply_import(services.engine, rows)
    reconcile.reconcile(services.board, services.engine, "", NOW)
    found: list[tuple[str, int]] = []

    def publish(arguments: tuple[str, list[int]], queue: str, **_: Any) -> None:
        found.append((queue, len(arguments[1])))

    monkeypatch.setattr(dispatch, "poll", SimpleNamespace(apply_async=publish))
    return found


def worker(**costs: float) -> Worker:
    return Worker("w", NOW, 0, 0, 0, 0, queues=tuple(QUEUES), costs=costs)


def published(services: Services, living: list[Worker]) -> None:
    router = BatchRouter(services, SessionHosts())
    dispatcher = Dispatcher(services.board, services.settings, router)
    dispatcher.set_batch_sizes(capacity.batch_sizes(living, services.settings.batch_size))
    dispatcher.dispatch("", 1, SimpleNamespace(batch=lambda max_size: nullcontext()), QUEUES, DUE)


def test_batches_of_an_expensive_collector_are_smaller_by_its_cost(
    services: Services, sent: list[tuple[str, int]]
) -> None:
    """The number of waiting batches is that of any collector, so fewer polls are in flight."""
    published(services, [worker(olt=8.0)])
    assert (
        sent == [("poll.snmp", 64)] * 3 + [("poll.olt", 8)] * 3
        or sent == [("poll.olt", 8)] * 3 + [("poll.snmp", 64)] * 3
    )
    assert services.redis.zcard(services.keys.due("poll.olt")) == 300 - 24


def test_without_a_cost_all_are_alike(services: Services, sent: list[tuple[str, int]]) -> None:
    published(services, [worker()])
    assert {size for _, size in sent} == {64}


def test_workers_tell_the_leader(services: Services) -> None:
    """The leader need not have the plugin; a cost that is none makes no strange worker."""
    worker_registry.announce(services.redis, services.keys, worker(olt=8.0))
    [seen] = worker_registry.registered(services.redis, services.keys)
    assert capacity.batch_sizes([seen], 64) == {"poll.olt": 8}
    worker_registry.announce(services.redis, services.keys, worker(olt=0.0))
    assert worker_registry.registered(services.redis, services.keys) == []
