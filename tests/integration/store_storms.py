"""A worker's writer and a sink, while the server of the sink's store dies, freezes and returns."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

from poller.domain.failures import delivery_backoff
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.settings import Settings
from poller.sinks.api import Sample
from poller.sinks.made_sink import MadeSink
from poller.workers.results.writers import Writers
from tests.conftest import wait_until
from tests.integration.store_servers import StoreServer

TARGETS = 4
#: Rounds of polls before and during each fault, and the pause between two.
ROUNDS = 10
PAUSE_S = 0.005


class Drops:
    """The samples that a sink left out, as the platform counts them."""

    def __init__(self) -> None:
        self.samples = 0
        self.reasons: list[str] = []

    def __call__(self, samples: int, reason: str) -> None:
        self.samples += samples
        self.reasons.append(reason)


def poll(target: int, at_ms: int, collector: str = "storm") -> Sample:
    """Return a poll of two metrics; the counter's value is the time, so that values differ."""
    device = PollTarget(
        target, 1, f"r{target}/{collector}", target, f"r{target}", "192.0.2.1", "ams", collector,
        1_000, 500,
    )  # fmt: skip
    readings = ReadingSet.of(
        [
            Reading("octets_total", float(at_ms), {"port": "1"}, Kind.COUNTER, 64),
            Reading("load", target / 4, {"port": "1"}),
        ]
    )
    return Sample(device, at_ms, readings)


@contextmanager
def worker(sink: Any, home: Path) -> Iterator[Writers]:
    """The writers of a worker with one sink and little patience."""
    settings = Settings(home=home, spool_patience_s=0.1)
    writers = Writers(None, [MadeSink("storm", sink.name, sink)], settings, "w@storm")  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery_backoff, "wait_s", lambda *_: 0.05)
        yield writers
        writers.close(5)
        sink.close()


class Storm:
    """Polls in a thread of their own, while a test does something to the server."""

    def __init__(self, writers: Writers) -> None:
        self.written: list[tuple[int, int]] = []  # target and time
        self._writers = writers
        self._at_ms = time.time_ns() // 1_000_000 - 3_600_000
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_for_rounds()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._ended.wait(PAUSE_S):
            self._at_ms += 1
            polls = [poll(target, self._at_ms) for target in range(TARGETS)]
            self._writers.write_readings(polls)
            self.written += [(target, self._at_ms) for target in range(TARGETS)]

    def wait_for_rounds(self, rounds: int = ROUNDS) -> None:
        """Wait until that many more rounds are written, to the store or to the spool."""
        goal = len(self.written) + rounds * TARGETS
        wait_until(lambda: len(self.written) >= goal, "more rounds")

    def wait_for_store(self) -> None:
        """Wait until the store has taken all that waited."""
        wait_until(lambda: self._writers.waiting == 0, "an empty spool")


Fault = Callable[[StoreServer, Storm], None]


def ride_out(sink: Any, home: Path, server: StoreServer, *faults: Fault) -> list[tuple[int, int]]:
    """Write through the faults, and return target and time of every poll that was written."""
    with worker(sink, home) as writers:
        with Storm(writers) as storm:
            for fault in faults:
                fault(server, storm)
                storm.wait_for_store()
                storm.wait_for_rounds()
        storm.wait_for_store()
        assert writers.dropped == 0
    return storm.written


def killed(server: StoreServer, storm: Storm) -> None:
    """The server dies at once, is away for some polls, and is started again."""
    server.kill()
    storm.wait_for_rounds()
    server.start()


def frozen(server: StoreServer, storm: Storm) -> None:
    """The server takes connections and answers nothing for longer than a request may take."""
    server.freeze()
    storm.wait_for_rounds()
    time.sleep(0.6)  # not to hope: requests must run out of time, and be sent again
    server.thaw()


def restarted(server: StoreServer, storm: Storm) -> None:
    """The server is stopped and started as its operator does."""
    server.stop()
    storm.wait_for_rounds()
    server.start()
