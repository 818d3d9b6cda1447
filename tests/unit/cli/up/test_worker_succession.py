"""Workers are replaced one after the other, and each only when the one before is ready."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import pytest

from poller.cli.up import worker_succession
from poller.cli.up.process_supervisor import Child, Role, Supervisor
from poller.cli.up.worker_succession import WorkerSuccession

CODE = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(60)"


class Stage:
    """Two workers and a page; `ready` has the pids of ready workers."""

    def __init__(self) -> None:
        self.ready: set[int] = set()
        self.supervisor = Supervisor(None, lambda _role, _text: None)
        self.children = [self._add(name) for name in ("worker1", "worker2", "web")]
        self.before = [pid(child) for child in self.children]
        self.succession = WorkerSuccession(self.supervisor, 10.0, lambda: self.ready)

    def _add(self, name: str) -> Child:
        return self.supervisor.add(Role(name, [sys.executable, "-c", CODE]))

    def is_new(self) -> list[bool]:
        return [pid(child) != old for child, old in zip(self.children, self.before, strict=True)]

    def check(self) -> None:
        self.supervisor.check()
        self.succession.check()

    def until(self, done: Callable[[], bool]) -> None:
        until = time.monotonic() + 20
        while not done():
            assert time.monotonic() < until
            self.check()
            time.sleep(0.01)


def pid(child: Child) -> int:
    assert child.process is not None
    return child.process.pid


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(worker_succession, "ASK_EVERY_S", 0.0)
    made = Stage()
    yield made
    made.supervisor.kill(lambda _: True)


def is_worker(name: str) -> bool:
    return name.startswith("worker")


def test_the_second_worker_waits_for_the_successor_of_the_first(stage: Stage) -> None:
    """Other roles run on; a second installation replaces both again."""
    stage.succession.begin(is_worker)
    stage.until(lambda: stage.is_new()[0])
    for _ in range(20):
        stage.check()
    assert stage.is_new() == [True, False, False]
    assert stage.children[1].replaceable
    stage.ready.add(pid(stage.children[0]))
    stage.until(lambda: stage.is_new()[1])
    assert stage.is_new() == [True, True, False]

    stage.before = [pid(child) for child in stage.children]
    stage.succession.begin(is_worker)
    stage.until(lambda: stage.is_new()[0])
    assert stage.is_new() == [True, False, False]


def test_a_successor_that_never_becomes_ready_holds_up_none_for_ever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_succession, "READY_S", -10.0 + 0.3)
    stage.succession.begin(is_worker)
    stage.until(lambda: all(stage.is_new()[:2]))
    assert not stage.ready
