"""The whole platform: a leader, workers and a server that poll a simulated fleet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import ledger, progress
from benchmarks.roles import Roles
from benchmarks.section import Figure
from benchmarks.stage import Process, Stage
from poller import errors
from poller.db.inventory import inventory_feed
from poller.state.cluster import overview_reader

_CELERY = ["-m", "celery", "-A", "poller", "--quiet"]
PATIENCE_INTERVALS, PATIENCE_S, FIRST_POLL_S = 4, 120, 0.02


@dataclass(frozen=True, slots=True)
class Cluster:
    stage: Stage
    beat: Process
    workers: list[Process]

    @property
    def roles(self) -> Roles:
        workers = [worker.pid for worker in self.workers]
        return {"beat": [self.beat.pid], "worker": workers, "server": [self.stage.server.pid]}

    def steady(
        self, targets: int, interval_s: float, rounds: int = 1, catch_up_s: float | None = None
    ) -> None:
        """Wait until every target was polled, no poll is late and the caches are warm.

        The first poll of a target by each worker is the most expensive, so several workers need
        several intervals. `catch_up_s` bounds the time until no poll is late.
        """
        engine = self.stage.services.engine
        patience_s = PATIENCE_S + PATIENCE_INTERVALS * interval_s + FIRST_POLL_S * targets
        until("polling every target once", targets, lambda: ledger.polled(engine), patience_s)
        until("catching up", 1, lambda: not self.overdue(), catch_up_s or patience_s)
        progress.wait("warming up", rounds * interval_s)

    def overdue(self) -> int:
        services = self.stage.services
        return overview_reader.read(services.redis, services.keys).overdue

    def stop(self) -> None:
        """Stop the leader first, so that no message stays in a queue."""
        for process in (self.beat, *self.workers):
            self.stage.stop(process)


def start(stage: Stage, workers: int = 1, **env: str) -> Cluster:
    """Start a leader and workers. `env` is for the workers."""
    beat = stage.start("beat", [*_CELERY, "beat"])
    started = [start_worker(stage, f"worker{number}", **env) for number in range(workers)]
    return Cluster(stage, beat, started)


def start_worker(stage: Stage, name: str, **env: str) -> Process:
    return stage.start(name, [*_CELERY, "worker", "-n", f"{name}@%h"], **env)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def until(
    what: str, total: float, done: Callable[[], float], within_s: float, every_s: float = 0.5
) -> None:
    """Wait until a condition is true. Raises StoreUnavailable if that takes too long."""
    if not progress.follow(what, total, done, within_s, every_s):
        raise errors.StoreUnavailable(
            f"{what}: not within {within_s:g} s", f"{done():,} of {total:,}"
        )


def whole(stage: Stage) -> list[Figure]:
    """Return the numbers of targets that are in no place or in more than one place."""
    with inventory_feed.all_specs(stage.services.engine) as stored:
        check = stage.services.board.check(spec.id for spec in stored.specs)
    return [
        Figure("lost", "targets lost", len(check.lost), "targets", below=1),
        Figure("doubled", "targets doubled", len(check.doubled), "targets", below=1),
    ]
