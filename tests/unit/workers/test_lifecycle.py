"""Whatever happens on the way out, results and sessions are not left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from poller import bootstrap
from poller.workers import lifecycle
from poller.workers.process import handback


class Sink:
    def __init__(self, name: str, done: list[str], problem: Exception | None = None) -> None:
        self.name, self._done, self._problem = name, done, problem

    def close(self) -> None:
        if self._problem is not None:
            raise self._problem
        self._done.append(self.name)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done by a worker that goes down, all of whose parts are pretended."""
    happened: list[str] = []
    writing = SimpleNamespace(close=lambda _: happened.append("writing"))
    poller = SimpleNamespace(writing=writing, close=lambda: happened.append("sessions"))
    sinks = [Sink("first", happened, OSError("broken")), Sink("second", happened)]
    monkeypatch.setattr(bootstrap, "services", lambda: SimpleNamespace(sinks=sinks))
    monkeypatch.setattr(lifecycle, "poller", lambda _: poller)
    monkeypatch.setattr(lifecycle, "stop", lambda *_: None)
    monkeypatch.setattr(lifecycle, "_queues", set)
    monkeypatch.setattr(lifecycle._State, "is_down", False)
    monkeypatch.setattr(lifecycle._State, "farewell", None)
    return happened


def test_a_sink_that_cannot_be_closed_keeps_no_other_from_it(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sinks are plugins, too."""
    monkeypatch.setattr(handback, "hand_back_queued", lambda *_: None)
    lifecycle._leave("w@host")
    assert done == ["writing", "sessions", "second"]


def test_all_is_closed_and_the_end_is_certain_whatever_the_hand_back_does(
    done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results go to disk, devices are told good-bye, and no thread keeps the process."""

    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    timers: list[tuple[Any, ...]] = []
    monkeypatch.setattr(handback, "hand_back_queued", broken)
    monkeypatch.setattr(lifecycle._State, "is_program", True)
    monkeypatch.setattr(lifecycle, "_later", lambda *asked: timers.append(asked))
    monkeypatch.setattr(
        lifecycle.poller, "cache_info", lambda: SimpleNamespace(currsize=1), raising=False
    )
    with pytest.raises(RuntimeError):
        lifecycle._go_down(SimpleNamespace(hostname="w@host", exitcode=0))
    assert done == ["writing", "sessions", "second"]
    assert len(timers) == 1
