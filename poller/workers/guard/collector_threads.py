"""Threads for what collectors do that blocks: each collector has its own, so one that hangs takes nobody else's.

The loop's default executor. A call that nobody waits for any more and that goes on is stuck: it is reported and gets a
replacement, up to a limit; beyond that the collector cannot be trusted with our threads.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poller.collectors import misbehaviour_log
from poller.workers.guard import running_code
from poller.workers.guard.marks import ThreadMarks, Whose

#: How long a call may go on after nobody waits for it, before its thread counts as stuck.
GRACE_S = 0.5
#: A thread without work ends after so long.
IDLE_S = 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    """For each collector in each process: threads at work, and threads that hang."""

    threads: int
    stuck: int


class Threads(ThreadPoolExecutor):
    """`asyncio.to_thread` and `run_in_executor(None, ...)` come here. `overrun` is told the name, once."""

    def __init__(
        self,
        limits: Limits,
        marks: ThreadMarks,
        collector_of: Callable[[int], str],
        overrun: Callable[[str], None],
    ) -> None:
        super().__init__(1)  # whose own threads are never started
        self._limits = limits
        self._marks = marks
        self._collector_of = collector_of
        self._overrun = overrun
        self._crews: dict[str, Crew] = {}
        self._guard = threading.Lock()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        whose = running_code.polled()
        name = self._collector_of(whose[1]) if whose else ""
        with self._guard:
            crew = self._crews.get(name)
            if crew is None:
                crew = self._crews[name] = Crew(name, self._limits, self._marks, self._overrun)
        return crew.submit(Job(whose, lambda: call(*args, **kwargs), crew))

    def stuck(self) -> dict[str, int]:
        """How many threads hang, by collector."""
        with self._guard:
            return {name: len(crew.stuck) for name, crew in self._crews.items() if crew.stuck}


class Job(Future[Any]):
    """A call in a thread. The loop cancels it when the poll that waits for it is cut off."""

    def __init__(self, whose: Whose | None, call: Callable[[], Any], crew: Crew) -> None:
        super().__init__()
        self.whose = whose
        self.thread_id = 0
        self._call = call
        self._crew = crew

    def run(self) -> None:
        if not self.set_running_or_notify_cancel():
            return
        self.thread_id = threading.get_ident()
        try:
            result = self._call()
        except BaseException as error:  # noqa: BLE001  whoever waits gets it, SystemExit too
            self.set_exception(error)
        else:
            self.set_result(result)

    def cancel(self) -> bool:
        cancelled = super().cancel()
        if not cancelled and self.running():
            with suppress(RuntimeError):  # asyncio passes a cancellation on from its loop
                asyncio.get_running_loop().call_later(GRACE_S, self._crew.look_after, self)
        return cancelled


class Crew:
    """The threads of one collector. They come when there is work, up to the limit, and go when there is none."""

    def __init__(
        self, name: str, limits: Limits, marks: ThreadMarks, overrun: Callable[[str], None]
    ) -> None:
        self.stuck: set[Job] = set()
        self._name = name
        self._limits = limits
        self._marks = marks
        self._overrun = overrun
        self._waiting: deque[Job] = deque()
        self._working: set[Job] = set()
        self._idle = 0
        self._changed = threading.Condition()

    def submit(self, job: Job) -> Job:
        with self._changed:
            self._waiting.append(job)
            self._staff()
        return job

    def look_after(self, job: Job) -> None:
        """Nobody has waited for it for a while. If it goes on, another thread takes its place, as far as allowed."""
        with self._changed:
            if job.done() or job not in self._working:
                return
            allowed = len(self.stuck) < self._limits.stuck
            if allowed:
                self._working.discard(job)
                self.stuck.add(job)
                self._staff()
            full = allowed and len(self.stuck) == self._limits.stuck
        misbehaviour_log.stuck_thread(self._name, where(job.thread_id), len(self.stuck))
        if full:
            self._overrun(self._name)

    def _staff(self) -> None:
        """Somebody for whoever waits: a thread without work, or a new one."""
        room = self._limits.threads - len(self._working)
        if self._waiting and room > 0:
            self._changed.notify()
            if self._idle < min(room, len(self._waiting)):
                with suppress(
                    RuntimeError
                ):  # no more threads to be had: whoever waits goes on waiting
                    threading.Thread(
                        target=self._work, name=f"blocking-{self._name}", daemon=True
                    ).start()
                    self._idle += 1  # it begins without work

    def _work(self) -> None:
        while (job := self._take()) is not None:
            with self._marks.marked(job.whose):
                job.run()
            with self._changed:
                self._working.discard(job)
                self.stuck.discard(job)
                self._idle += 1

    def _take(self) -> Job | None:
        """Called by a thread that counts as idle."""
        with self._changed:
            ready = self._changed.wait_for(self._may_begin, IDLE_S)
            self._idle -= 1
            if not ready:
                return None
            job = self._waiting.popleft()
            self._working.add(job)
            self._staff()
            return job

    def _may_begin(self) -> bool:
        return bool(self._waiting) and len(self._working) < self._limits.threads


def where(thread_id: int, most: int = 4) -> str:
    """What a thread does now: files, lines and names, the innermost last; never a value."""
    frame = sys._current_frames().get(thread_id)
    frames = list(traceback.walk_stack(frame))[:most] if frame else []
    return " > ".join(
        f"{Path(each.f_code.co_filename).name}:{line} {each.f_code.co_name}"
        for each, line in frames[::-1]
    )
