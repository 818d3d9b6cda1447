"""The job runs of this worker process: count them, and end them when the worker stops."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

from poller.observability import logs

log = logs.get(__name__)


class TrackedRun(Protocol):
    """A run of this process."""

    @property
    def has_ended(self) -> bool:
        """Whether its handler has ended."""
        ...

    def wake(self) -> None:
        """Wake the thread that watches it."""

    def hand_back(self) -> None:
        """Give its attempt back."""


class RunningJobs:
    """One per worker process, safe for threads."""

    def __init__(self) -> None:
        self.stopping = threading.Event()  # no new runs
        self.draining = threading.Event()  # running handlers are cancelled
        self._runs: set[TrackedRun] = set()  # whose threads wait for them
        self._left: set[TrackedRun] = set()  # whose handlers ignored their cancellation
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._runs)

    @contextmanager
    def tracked(self, run: TrackedRun) -> Iterator[None]:
        """Count a run while the context lasts, and wake the thread that watches it at the drain."""
        with self._lock:
            self._runs.add(run)
        try:
            yield
        finally:
            with self._lock:
                self._runs.discard(run)

    def stop(self) -> None:
        """Begin no further run."""
        self.stopping.set()

    def drain(self) -> None:
        """Cancel the running handlers. The threads that watch them give the attempts back."""
        self.stopping.set()
        self.draining.set()
        with self._lock:
            runs = tuple(self._runs)
        for run in runs:
            run.wake()

    def leave_behind(self, run: TrackedRun) -> None:
        """Note a run whose handler goes on although the worker stops."""
        with self._lock:
            self._left.add(run)

    def hand_back_unended(self, within_s: float) -> None:
        """Give back the attempts whose handlers still run. Never raises.

        Only for a process that ends now: its handlers end with it. Otherwise two handlers of one
        plan would run.
        """
        with self._lock:
            runs = self._left | {run for run in self._runs if not run.has_ended}
        if not runs:
            return
        # SQL may be silent, and the process ends nevertheless.
        thread = threading.Thread(target=_hand_back, args=(runs,), name="hand-back", daemon=True)
        with suppress(RuntimeError):  # the system has no more threads, or Python ends
            thread.start()
            thread.join(within_s)


def _hand_back(runs: Iterable[TrackedRun]) -> None:
    for run in runs:
        try:
            run.hand_back()
        except Exception:  # door: the end of the process; the lease runs out
            log.exception("job_not_given_back")
