"""One child process as the worker sees it: started, asked, and ended when it does not answer in time.

Its thread starts it and waits for its end, so that the kernel ends it with us: the death signal is that thread's.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from poller.collectors.api import Poll
from poller.collectors.poll_runner import GRACE_S
from poller.domain.failures.outcome import Outcome
from poller.domain.inventory.poll_target import PollTarget
from poller.settings import setting_sources
from poller.workers.guard import marks
from poller.workers.guard.child import child_messages, frames
from poller.workers.guard.child.child_messages import Hello

#: A child that is not ready by then never will be.
START_S = 30.0
#: Beyond deadline and grace: for the way there and back, and for a worker that was paused.
SLACK_S = 2.0


@dataclass(slots=True)
class Asked:
    """A poll under way in the child."""

    target: PollTarget
    poll: Poll
    answer: asyncio.Future[Outcome]


@dataclass(frozen=True, slots=True)
class End:
    """Why it ended, and the polls whose code ran. Without a reason we wanted it to; `ours`: it never ran."""

    reason: str
    ours: bool = False
    blamed: tuple[Asked, ...] = ()
    innocent: tuple[Asked, ...] = ()
    trace: str = ""


class Process:
    """All but the thread's own work happens on the loop. `ended` is called there, once."""

    def __init__(self, hello: Hello, ended: Callable[[Process, End], None]) -> None:
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tired = False
        self.asked: dict[int, Asked] = {}
        self._hello = hello
        self._ended = ended
        self._numbers = count(1)
        self._why = ""  # why we ended it, if we did
        self._overdue = 0  # the poll that was not answered in time
        self._closed = self._never_ran = self._gone = False
        self._page = os.memfd_create("poller-marks", os.MFD_CLOEXEC)
        os.ftruncate(self._page, marks.SIZE + marks.FAULT_SIZE)
        self._cells = memoryview(mmap.mmap(self._page, marks.SIZE)).cast("q")
        self._sock, self._theirs = socket.socketpair()
        self._popen: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        loop = asyncio.get_running_loop()
        self._starting = loop.call_later(
            START_S, self.end, f"it was not ready within {START_S:g} s"
        )
        self._talk = loop.create_task(self._read())
        threading.Thread(
            target=self._keep, args=(loop,), name=f"child-{hello.collector}", daemon=True
        ).start()

    # In its thread

    def _keep(self, loop: asyncio.AbstractEventLoop) -> None:
        said = self._run()
        with suppress(RuntimeError):  # the loop is closed: so are we
            loop.call_soon_threadsafe(self._over, said)

    def _run(self) -> str:
        """From start to end; what the end looked like."""
        numbers = (self._theirs.fileno(), self._page)
        words = [sys.executable, "-m", __package__, *map(str, numbers), str(os.getpid())]
        try:
            self._popen = subprocess.Popen(
                words,
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:  # no memory, no more processes: not the collector's fault
            self._never_ran = True
            return f"it cannot be started: {error.strerror}"
        finally:
            self._theirs.close()
        os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
        self._kill()  # what it started itself; before it is reaped, so that the number is still its own
        return _told(self._popen.wait())

    def _kill(self) -> None:
        if self._popen is not None and self._popen.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    # On the loop

    async def _read(self) -> None:
        reader, self._writer = await asyncio.open_unix_connection(sock=self._sock, limit=2**20)
        self._writer.write(frames.pack(asdict(self._hello)))
        try:
            while (frame := await frames.read(reader)) is not None:
                self._hear(*frame)
        except (frames.BadFrame, child_messages.BadAnswer) as error:
            self.end(f"it answered with {error}")

    def _hear(self, head: dict[str, Any], body: bytes) -> None:
        if "poll" in head:
            self._answered(head, body)
        elif "ready" in head and not self.ready.done():
            self._starting.cancel()
            self.ready.set_result(None)
        elif "tired" in head:
            self.retire()
        elif "failed" in head and not self.ready.done():
            self._why = f"it cannot be started: {head['failed']}"

    def _answered(self, head: dict[str, Any], body: bytes) -> None:
        asked = self.asked.get(head["poll"]) if type(head["poll"]) is int else None
        if asked is None or asked.answer.done():
            return
        asked.answer.set_result(child_messages.outcome(head, body, asked.poll))

    async def ask(self, target: PollTarget, poll: Poll, budget_s: float) -> Outcome:
        """Raises CancelledError, also when the child ended by another's fault: then nothing is known of this poll."""
        if self._gone or self._closed:  # in the moment it was ready: nobody would ever answer
            raise asyncio.CancelledError
        loop, number = asyncio.get_running_loop(), next(self._numbers)
        self._send(child_messages.ask(number, target, poll, budget_s))
        asked = self.asked[number] = Asked(target, poll, loop.create_future())
        timer = loop.call_later(budget_s + GRACE_S, self._late, number)
        try:
            return await asked.answer
        except asyncio.CancelledError:
            self._send(frames.pack({"cut": number}))
            raise
        finally:
            timer.cancel()
            del self.asked[number]
            if self.tired:
                self.retire()

    def _send(self, frame: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frame)

    def _late(self, number: int) -> None:
        """If we were paused, the answer is here already and only has to be read: look again."""
        asyncio.get_running_loop().call_later(SLACK_S, self._too_late, number)

    def _too_late(self, number: int) -> None:
        if number in self.asked:
            self._overdue = self._overdue or number
            self.end("it did not answer in time")

    def end(self, reason: str) -> None:
        """Kill it, and what it started. Its thread tells when it is gone."""
        self._why = self._why or reason
        self._kill()

    def retire(self) -> None:
        """It finishes what it has, and goes."""
        self.tired = True
        if not self.asked:
            self.close()

    def close(self) -> None:
        """Nothing more to do: it leaves by itself, or is killed if it does not."""
        self._closed = True
        if self._writer is not None:
            self._writer.close()
        asyncio.get_running_loop().call_later(SLACK_S, self._kill)

    def _over(self, said: str) -> None:
        self._gone = True
        self._starting.cancel()
        self._talk.cancel()
        if self._writer is not None:
            self._writer.close()
        else:
            self._sock.close()
        trace = marks.read_fault(self._page, marks.SIZE)
        end = self._told_apart("" if self._closed else self._reason(said, trace), trace)
        os.close(self._page)
        if not self.ready.done():
            self.ready.cancel()
        self._ended(self, end)

    def _reason(self, said: str, trace: str) -> str:
        where = marks.place(trace)
        return self._why or (f"{said} at {where}" if where else said)

    def _told_apart(self, reason: str, trace: str) -> End:
        """Whose code ran, by the marks; the one that is overdue, if no code ran on the loop."""
        waiting = {n: asked for n, asked in self.asked.items() if not asked.answer.done()}
        ran = {number for _, number in marks.blamed(self._cells, trace)}
        if self._overdue and not self._cells[marks.TARGET]:
            ran = {self._overdue}
        blamed = {n: asked for n, asked in waiting.items() if n in ran}
        innocent = tuple(asked for n, asked in waiting.items() if n not in blamed)
        return End(reason, self._never_ran, tuple(blamed.values()), innocent, trace)


def _told(code: int) -> str:
    if code >= 0:
        return f"it exited with code {code}"
    with suppress(ValueError):
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it was ended by signal {-code}"


def _environment() -> Mapping[str, str]:
    """Ours without the secrets: what the collector needs comes through the socket."""
    names = {
        f"{setting_sources.PREFIX}{name.upper()}{tail}"
        for name in setting_sources.SECRETS
        for tail in ("", "_FILE")
    }
    return {name: value for name, value in os.environ.items() if name not in names}
