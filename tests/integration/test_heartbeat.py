"""The heartbeat of a worker goes on while other parts hang or fail."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kombu.common import QoS

from poller import errors
from poller.bootstrap import Services
from poller.jobs.registry import Registry
from poller.plugins import Broken
from poller.state.cluster import worker_registry
from poller.workers.batch import worker_poller
from poller.workers.batch.batch_run import BatchRun
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard import black_box, crash_report
from poller.workers.jobs.job_runner import JobRunner
from poller.workers.process.heartbeat import Heartbeat
from tests.conftest import wait_until

CONSUMER = SimpleNamespace(
    pool=SimpleNamespace(limit=4, spare=0),
    qos=QoS(lambda **_: None, 4),
    hub=SimpleNamespace(call_soon=lambda *_: None),
    app=SimpleNamespace(tasks={"poller.poll": SimpleNamespace(rate_limit=None)}),
)


@pytest.fixture
def heartbeat(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Heartbeat]:
    monkeypatch.setattr(worker_registry, "HEARTBEAT_S", 0.02)
    monkeypatch.setattr(crash_report, "CHECK_S", 0.02)
    poller = Poller(services, "living@host")
    jobs = JobRunner(services, "living@host", poller.lending, lambda _: None)
    heartbeat = Heartbeat(services, poller, jobs, {})
    yield heartbeat
    heartbeat.stop()
    poller.close()


def beats(services: Services) -> Callable[[], bool]:
    """Return a condition: a heartbeat came after this call."""
    began_ms = services.board.now_ms()
    return lambda: any(
        worker.seen_ms > began_ms
        for worker in worker_registry.registered(services.redis, services.keys)
    )


def is_reporting() -> bool:
    return any(thread.name == "crash-report" for thread in threading.enumerate())


def test_a_database_that_hangs_costs_no_heartbeat(
    heartbeat: Heartbeat, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of this host has died, and SQL does not answer the crash reporter."""
    hanging = threading.Event()
    over = threading.Event()

    def hang(*_: Any) -> None:
        hanging.set()
        over.wait(20)

    heartbeat.attach(CONSUMER)
    monkeypatch.setattr(black_box, "read_crashes", hang)
    assert hanging.wait(10)
    wait_until(beats(services), "a heartbeat")
    over.set()


def test_a_heartbeat_tells_which_jobs_cannot_be_used(
    heartbeat: Heartbeat, services: Services
) -> None:
    """With the reason, without secrets, and bounded."""
    services.redactor.remember("hunter22")
    faults = [Broken(f"odd{n:02}", "acme 1.0", f"hunter22 {'x' * 900}") for n in range(30)]
    services.jobs = Registry(broken=tuple(faults))  # type: ignore[misc]
    heartbeat.attach(CONSUMER)
    wait_until(beats(services), "a heartbeat")
    [worker] = worker_registry.registered(services.redis, services.keys)
    assert len(worker.broken_jobs) == 20
    fault = worker.broken_jobs["odd00"]
    assert (fault["distribution"], len(fault["reason"])) == ("acme 1.0", 500)
    assert fault["reason"].startswith("******** x")


def test_the_crash_reporter_survives_every_error_and_ends_with_the_worker(
    heartbeat: Heartbeat, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first check comes before the first poll, the others while the worker polls."""
    checks: list[str] = []

    def fail(*_: Any) -> None:
        checks.append(threading.current_thread().name)
        raise ValueError("a damaged file")

    monkeypatch.setattr(black_box, "read_crashes", fail)
    heartbeat.attach(CONSUMER)
    assert checks[0] == threading.current_thread().name
    wait_until(lambda: checks.count("crash-report") >= 3, "more checks")
    wait_until(beats(services), "a heartbeat")
    heartbeat.stop()
    assert not is_reporting()


def test_a_rate_limit_and_an_unusable_store_are_reported(
    heartbeat: Heartbeat, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict names both; an error of a store is reported for some seconds only."""
    heartbeat.attach(CONSUMER)
    task = CONSUMER.app.tasks["poller.poll"]
    monkeypatch.setattr(task, "rate_limit", "1/m")

    def full(*_: Any) -> None:
        raise errors.StoreUnavailable("cannot use the database", "too many clients already")

    monkeypatch.setattr(BatchRun, "run", full)
    with pytest.raises(errors.StoreUnavailable):
        heartbeat._poller.poll("1.1.a", [1])

    def reported() -> tuple[str, str]:
        [worker] = worker_registry.registered(services.redis, services.keys)
        return worker.rate_limit, worker.store_error

    found = ("1/m", "cannot use the database (too many clients already)")
    wait_until(lambda: reported() == found, "both in a heartbeat")
    monkeypatch.setattr(worker_poller, "ERROR_LASTS_S", 0.0)
    wait_until(lambda: reported() == ("1/m", ""), "a heartbeat without the error")
    monkeypatch.setattr(task, "rate_limit", "0")
    wait_until(lambda: reported() == ("", ""), "a heartbeat without a limit")
