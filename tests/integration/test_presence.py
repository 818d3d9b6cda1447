"""A worker's heartbeat goes on, whatever becomes of the rest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.common import QoS

from poller.bootstrap import Services
from poller.state.cluster import worker_registry
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard import black_box, crash_report
from poller.workers.process.heartbeat import Presence
from poller.workers.process.prefork_children import Tally
from tests.conftest import wait_until

CONSUMER = SimpleNamespace(
    pool=SimpleNamespace(limit=4, spare=0),
    qos=QoS(lambda **_: None, 4),
    hub=SimpleNamespace(call_soon=lambda *_: None),
)


@pytest.fixture
def presence(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Presence]:
    monkeypatch.setattr(worker_registry, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(crash_report, "LOOK_S", 0.02)
    poller = Poller(services, "living@host")
    made = Presence(services, poller, {}, Tally)
    yield made
    made.stop()
    poller.close()


def beats(services: Services) -> Callable[[], bool]:
    """Whether the worker has said that it lives since this was asked."""
    began_ms = services.board.now_ms()
    return lambda: any(
        worker.seen_ms > began_ms for worker in worker_registry.known(services.redis, services.keys)
    )


def is_looking() -> bool:
    return any(thread.name == "aftermath" for thread in threading.enumerate())


def test_a_database_that_hangs_costs_no_heartbeat(
    presence: Presence, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody on this host has died, and SQL is silent when it is asked whose fault that was."""
    hanging, over = threading.Event(), threading.Event()

    def look(*_: Any) -> None:
        hanging.set()
        over.wait(20)

    presence.attach(CONSUMER)
    monkeypatch.setattr(black_box, "open_wrecks", look)
    assert hanging.wait(10)
    wait_until(beats(services), "a heartbeat")
    over.set()


def test_looking_for_the_dead_survives_every_error_and_ends_with_the_worker(
    presence: Presence, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look comes before the first poll, the others while it polls."""
    looks: list[str] = []

    def broken(*_: Any) -> None:
        looks.append(threading.current_thread().name)
        raise ValueError("a damaged file")

    monkeypatch.setattr(black_box, "open_wrecks", broken)
    presence.attach(CONSUMER)
    assert looks[0] == threading.current_thread().name
    wait_until(lambda: looks.count("aftermath") >= 3, "more looks")
    wait_until(beats(services), "a heartbeat")
    presence.stop()
    assert not is_looking()
