"""What does a poll cost with reports to Sentry, and what does a crashing poll cost?"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import ClassVar

from pydantic import SecretStr

from benchmarks import progress
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from poller.collectors import api
from poller.collectors.registry import Registry
from poller.db.inventory import devices
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.poll_target import TargetSpec
from poller.state.board.board_values import ClaimLimits
from poller.workers.batch.worker_poller import Poller

BATCH = 64
QUEUE = "poll.bench"
#: A closed port: reports are made and then dropped.
DSN = "http://0123456789abcdef@127.0.0.1:9/1"


@dataclass(frozen=True, slots=True)
class Size:
    rounds: int
    batches: int  # per measurement


class Bench:
    """A collector that returns a reading at once, or crashes."""

    name: ClassVar[str] = "bench"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    Options: ClassVar[type[api.Options]] = api.Options
    crashes = False

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if self.crashes:
            raise KeyError("a bug")
        yield api.Reading("polled", 1.0)


class Worker:
    """The batches of a worker in this process, on targets that are polled repeatedly."""

    def __init__(self, stage: Stage) -> None:
        self.services = stage.services
        self.collector = Bench()
        self.services.registry = Registry({"bench": self.collector}, (), {"bench": "benchmarks"})
        self._poller = Poller(self.services, "bench@here")
        self._room = ClaimLimits(BATCH, BATCH, 60_000)
        self._claims = 0
        for number in range(BATCH):
            draft = TargetDraft("bench", "bench", {}, interval_ms=3_600_000, timeout_ms=1_000)
            devices.add(self.services.engine, DeviceDraft(f"d{number}", "127.0.0.1"), [draft])
        self._ids = list(range(1, BATCH + 1))
        specs = [(TargetSpec(i, 1, QUEUE, 3_600_000, 1_000), 1) for i in self._ids]
        self.services.board.place("", specs, 1)

    def cpu_us(self, batches: int) -> float:
        """Return the CPU time of this process per poll, for all its threads."""
        began = time.process_time()
        for _ in range(batches):
            self._claims += 1
            token, before = f"t{self._claims}", f"t{self._claims - 1}" if self._claims > 1 else ""
            self.services.board.demand(self._ids)
            self.services.board.claim("", token, before, {QUEUE: 100}, self._room)
            self._poller.poll(token, self._ids)
        return (time.process_time() - began) / batches / BATCH * 1e6


def run(size: Size, stage: Stage) -> Findings:
    worker = Worker(stage)
    root = logging.getLogger()
    plain = list(root.handlers)
    worker.services.settings = worker.services.settings.model_copy(
        update={"sentry_dsn": SecretStr(DSN)}
    )
    worker.services.report_errors("worker")
    reporting = list(root.handlers)
    ways = [(plain, list[float]()), (reporting, list[float]())]
    worker.cpu_us(size.batches)  # warm-up
    with progress.shown("polling with and without reports", size.rounds) as show:
        for number in range(size.rounds):
            for handlers, found in ways if number % 2 else reversed(ways):
                root.handlers[:] = handlers
                found.append(worker.cpu_us(size.batches))
            show(number)
    worker.collector.crashes = True
    root.handlers[:] = [handler for handler in reporting if handler not in plain]
    crashing = worker.cpu_us(size.batches)
    root.handlers[:] = plain
    (_, without), (_, with_) = ways
    return _findings(min(without), min(with_), crashing)


def _findings(without: float, with_: float, crashing: float) -> Findings:
    return Findings(
        [
            Figure("poll_us", f"CPU of a poll in a batch of {BATCH}, without a DSN", without, "us"),
            Figure("poll_dsn_us", "the same with a DSN", with_, "us"),
            Figure("report_us", "what a DSN adds", with_ - without, "us", below=without * 0.05),
            Figure("crash_us", "CPU of a poll that crashes, with a DSN", crashing, "us"),
        ],
        notes=[
            "The collector answers at once: all of it is the platform, claim and demand included.",
            "The least of all rounds counts: it was disturbed least.",
        ],
    )


SECTION = Section(
    asks="what does error reporting cost a poll?",
    sizes={"full": Size(30, 40), "small": Size(10, 20), "tiny": Size(3, 3)},
    run=run,
)
