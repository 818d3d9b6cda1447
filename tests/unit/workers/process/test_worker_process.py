"""The end of a worker closes results, sessions and sinks, also after an error."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from poller import bootstrap
from poller.sinks.made_sink import MadeSink
from poller.workers import lifecycle
from poller.workers.process import handback, worker_process
from poller.workers.process.worker_process import ProcessState


class Sink:
    def __init__(self, name: str, closed: list[str], problem: Exception | None = None) -> None:
        self.name = name
        self._closed = closed
        self._problem = problem

    def close(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._closed.append(self.name)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts of a worker that were closed; all parts are fakes."""
    names: list[str] = []
    writers = SimpleNamespace(close=lambda _: names.append("writers"))
    poller = SimpleNamespace(writers=writers, close=lambda: names.append("sessions"))
    stubborn: Any = Sink("first", names, OSError("broken"))
    second: Any = Sink("second", names)
    sinks = [MadeSink("first", "fake", stubborn), MadeSink("second", "fake", second)]
    monkeypatch.setattr(bootstrap, "services", lambda: SimpleNamespace(sinks=sinks))
    monkeypatch.setattr(worker_process, "poller", lambda _: poller)
    monkeypatch.setattr(worker_process, "stop", lambda *_: None)
    monkeypatch.setattr(worker_process, "subscribed_queues", lambda _: set())
    monkeypatch.setattr(worker_process, "state", ProcessState())
    return names


def test_a_sink_that_cannot_be_closed_does_not_keep_others_open(
    closed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sinks are plugins and may raise."""
    monkeypatch.setattr(handback, "hand_back_queued", lambda *_: None)
    worker_process.leave("w@host")
    assert closed == ["writers", "sessions", "second"]


def test_the_process_closes_and_ends_although_the_hand_back_raises(
    closed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A timer ends the process even if a thread of a collector never ends."""

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    timers: list[tuple[Any, ...]] = []
    monkeypatch.setattr(handback, "hand_back_queued", broken)
    monkeypatch.setattr(worker_process.state, "owns_process", True)
    monkeypatch.setattr(worker_process, "run_later", lambda *arguments: timers.append(arguments))
    monkeypatch.setattr(
        worker_process.poller, "cache_info", lambda: SimpleNamespace(currsize=1), raising=False
    )
    with pytest.raises(RuntimeError):
        lifecycle._on_shutdown(SimpleNamespace(hostname="w@host", exitcode=0))
    assert closed == ["writers", "sessions", "second"]
    assert len(timers) == 1
