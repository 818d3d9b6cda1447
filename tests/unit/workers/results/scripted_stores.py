"""Destinations that do as a test says, and workers that write to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from poller import errors
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.domain.record.run import Run
from poller.settings import Settings
from poller.sinks.api import Sample
from poller.sinks.made_sink import MadeSink
from poller.workers.results.writers import Writers

#: Long enough for anything that works, short enough to wait for what does not.
PATIENCE_S = 0.6


class Store:
    """A scripted destination. `rows` are the numbers it has, in order of arrival."""

    name: ClassVar[str] = "store"
    api_version: ClassVar[int] = 1

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.problem: Callable[[list[int]], BaseException | None] = lambda _: None
        self.open = threading.Event()  # while it is not set, no call returns
        self.open.set()
        self.called = threading.Semaphore(0)
        self.write_polls = 1024

    @property
    def rows(self) -> list[int]:
        return [number for call in self.calls for number in call]

    def write(self, items: Sequence[Any]) -> None:
        numbers = []
        for item in items:
            numbers.append(item.target_id if isinstance(item, Run) else item.target.id)
        self.called.release()
        assert self.open.wait(20)
        if problem := self.problem(numbers):
            raise problem
        self.calls.append(numbers)

    def close(self) -> None: ...

    def go_away(self) -> None:
        self.problem = lambda _: errors.StoreUnavailable("away")

    def come_back(self) -> None:
        self.problem = lambda _: None


class SecondStore(Store):
    name: ClassVar[str] = "second"


class World:
    """A ledger and two sinks, and workers that write to them; most use one sink."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.ledger = Store()
        self.sink = Store()
        self.second_sink = SecondStore()
        self.writers: list[Writers] = []

    def worker(
        self,
        name: str = "w@test",
        more_sinks: Sequence[Any] = (),
        write_polls: int = 1024,
        **settings: Any,
    ) -> Writers:
        chosen = Settings(home=self.home, **{"spool_patience_s": PATIENCE_S, **settings})
        engine: Any = None
        sink: Any = self.sink
        sink.write_polls = write_polls
        made = [MadeSink(each.name, "fake", each) for each in (sink, *more_sinks)]
        writers = Writers(engine, made, chosen, name)
        self.writers.append(writers)
        return writers

    def files(self) -> list[Path]:
        return sorted(self.home.glob("spool/*/*/*.rounds"))


def row(number: int) -> Run:
    return Run(number, 1_000, Result.OK)


def sample(number: int) -> Sample:
    target = PollTarget(number, 1, "t", 1, "d", "127.0.0.1", "", "fake", 1_000, 500)
    return Sample(target, 1_000, ReadingSet.of([Reading("polled", 1.0)]))


def store(worker: Writers, *polls: int) -> float:
    """Write one round; return the seconds it took."""
    started = time.monotonic()
    worker.write_readings([sample(number) for number in polls])
    worker.write_rows([row(number) for number in polls])
    return time.monotonic() - started


def soon(condition: Callable[[], Any], within_s: float = 10.0) -> None:
    until = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.005)
