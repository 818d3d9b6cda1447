"""One child process as the worker sees it: start, requests, responses, and its end.

A thread starts the child and waits for its end. The child's death signal belongs to that thread,
so the kernel ends the child together with the worker.
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from poller.collectors.api import Poll
from poller.collectors.poll_runner import GRACE_S
from poller.domain.failures.outcome import Outcome
from poller.domain.inventory.poll_target import PollTarget
from poller.settings import setting_sources
from poller.workers.guard import running_code
from poller.workers.guard.child import child_messages, frames
from poller.workers.guard.child.child_messages import ChildConfig

#: The time limit for the start of a child.
START_S = 30.0
#: The time for a response beyond deadline and grace: transport, and a worker that was paused.
SLACK_S = 2.0


@dataclass(slots=True)
class PendingPoll:
    """A poll that the child has not answered yet."""

    target: PollTarget
    poll: Poll
    outcome: asyncio.Future[Outcome]


@dataclass(frozen=True, slots=True)
class ChildEnd:
    """The end of a child: why it ended, and its pending polls."""

    reason: str  # empty: the worker closed it
    never_ran: bool = False  # the system could not start it
    blamed: tuple[PendingPoll, ...] = ()  # their code ran
    others: tuple[PendingPoll, ...] = ()
    trace: str = ""


class ChildProcess:
    """A child and its socket. All methods but `_run_child` and `_kill` run on the loop."""

    def __init__(self, config: ChildConfig) -> None:
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[ChildEnd] = loop.create_future()
        self.is_retiring = False
        self._config = config
        self._pending: dict[int, PendingPoll] = {}
        self._numbers = count(1)
        self._kill_reason = ""
        self._overdue_number = 0  # the first poll without a response in time
        self._is_closed = False
        self._never_ran = False

        self._marks_file = os.memfd_create("poller-marks", os.MFD_CLOEXEC)
        os.ftruncate(self._marks_file, running_code.SIZE + running_code.FAULT_SIZE)
        self._cells = memoryview(mmap.mmap(self._marks_file, running_code.SIZE)).cast("q")
        self._socket, self._child_socket = socket.socketpair()
        self._popen: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None

        reason = f"it was not ready within {START_S:g} s"
        self._start_timer = loop.call_later(START_S, self.kill, reason)
        self._reading = loop.create_task(self._read())
        name = f"child-{config.collector}"
        threading.Thread(target=self._run_child, args=(loop,), name=name, daemon=True).start()

    def _run_child(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the child from start to end, in the thread of this child."""
        status = self._start_and_wait()
        with suppress(RuntimeError):  # the loop is closed: the worker ends
            loop.call_soon_threadsafe(self._finish, status)

    def _start_and_wait(self) -> str:
        """Return a description of how the child ended."""
        descriptors = (self._child_socket.fileno(), self._marks_file)
        arguments = [str(number) for number in (*descriptors, os.getpid())]
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", __package__, *arguments],
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                env=_environment(),
                start_new_session=True,
            )
        except OSError as error:  # no memory, no more processes: the collector is not to blame
            self._never_ran = True
            return f"it cannot be started: {error.strerror}"
        finally:
            self._child_socket.close()

        os.waitid(os.P_PID, self._popen.pid, os.WEXITED | os.WNOWAIT)
        self._kill()  # its own children; before the process is reaped and its id can be reused
        return _exit_text(self._popen.wait())

    def _kill(self) -> None:
        """Kill the process group of the child, unless the child is reaped."""
        popen = self._popen
        if popen is not None and popen.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)

    async def _read(self) -> None:
        """Send the configuration, then receive frames until the socket closes."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._socket, limit=2**20)
        config = asdict(self._config)
        self._writer.write(frames.pack(config))

        try:
            while True:
                frame = await frames.read(reader)
                if frame is None:
                    return
                self._receive(*frame)
        except (frames.BadFrame, child_messages.BadResponse) as error:
            self.kill(f"it answered with {error}")

    def _receive(self, head: dict[str, Any], body: bytes) -> None:
        if "poll" in head:
            self._receive_response(head, body)
        elif "ready" in head and not self.ready.done():
            self._start_timer.cancel()
            self.ready.set_result(None)
        elif "tired" in head:
            self.retire()
        elif "failed" in head and not self.ready.done():
            self._kill_reason = f"it cannot be started: {head['failed']}"

    def _receive_response(self, head: dict[str, Any], body: bytes) -> None:
        number = head["poll"]
        pending = self._pending.get(number) if type(number) is int else None
        if pending is None or pending.outcome.done():
            return

        outcome = child_messages.unpack_response(head, body, pending.poll)
        pending.outcome.set_result(outcome)

    async def poll(self, target: PollTarget, poll: Poll, budget_s: float) -> Outcome:
        """Poll a target in the child within the budget.

        Raises CancelledError, also when the child ends by another poll's fault: this poll has no
        outcome.
        """
        if self.ended.done() or self._is_closed:  # it ended in the moment it was ready
            raise asyncio.CancelledError
        loop = asyncio.get_running_loop()
        number = next(self._numbers)
        request = child_messages.pack_request(number, target, poll, budget_s)
        self._send(request)

        pending = PendingPoll(target, poll, loop.create_future())
        self._pending[number] = pending
        timer = loop.call_later(budget_s + GRACE_S, self._check_later, number)
        try:
            return await pending.outcome
        except asyncio.CancelledError:
            self._send(frames.pack({"cut": number}))
            raise
        finally:
            timer.cancel()
            del self._pending[number]
            if self.is_retiring:
                self.retire()

    def _send(self, frame: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frame)

    def _check_later(self, number: int) -> None:
        """Wait once more: after a pause of the worker the response only has to be read."""
        loop = asyncio.get_running_loop()
        loop.call_later(SLACK_S, self._kill_if_overdue, number)

    def _kill_if_overdue(self, number: int) -> None:
        if number in self._pending:
            self._overdue_number = self._overdue_number or number
            self.kill("it did not answer in time")

    def kill(self, reason: str) -> None:
        """Kill the child and its own children. `ended` is set when they are gone."""
        self._kill_reason = self._kill_reason or reason
        self._kill()

    def retire(self) -> None:
        """Let the child finish its pending polls, then close it."""
        self.is_retiring = True
        if not self._pending:
            self.close()

    def close(self) -> None:
        """Close the socket: the child exits, and is killed if it does not."""
        self._is_closed = True
        if self._writer is not None:
            self._writer.close()
        asyncio.get_running_loop().call_later(SLACK_S, self._kill)

    def _finish(self, status: str) -> None:
        self._start_timer.cancel()
        self._reading.cancel()
        if self._writer is not None:
            self._writer.close()
        else:
            self._socket.close()

        trace = running_code.read_fault(self._marks_file, running_code.SIZE)
        os.close(self._marks_file)
        reason = "" if self._is_closed else self._reason(status, trace)
        end = self._end(reason, trace)

        self.ended.set_result(end)
        if not self.ready.done():
            self.ready.cancel()

    def _reason(self, status: str, trace: str) -> str:
        if self._kill_reason:
            return self._kill_reason
        location = running_code.fault_location(trace)
        return f"{status} at {location}" if location else status

    def _end(self, reason: str, trace: str) -> ChildEnd:
        """Blame the polls whose code ran; if no code ran on the loop, the poll that is overdue."""
        suspects = running_code.suspects(self._cells, trace)
        numbers = {suspect.batch_number for suspect in suspects}
        if self._overdue_number and not self._cells[running_code.TARGET]:
            numbers = {self._overdue_number}

        blamed: list[PendingPoll] = []
        others: list[PendingPoll] = []
        for number, pending in self._pending.items():
            if pending.outcome.done():
                continue
            if number in numbers:
                blamed.append(pending)
            else:
                others.append(pending)

        return ChildEnd(reason, self._never_ran, tuple(blamed), tuple(others), trace)


def _exit_text(code: int) -> str:
    if code >= 0:
        return f"it exited with code {code}"
    with suppress(ValueError):
        return f"it was ended by {signal.Signals(-code).name}"
    return f"it was ended by signal {-code}"


def _environment() -> Mapping[str, str]:
    """Return the worker's environment without secrets: credentials come by the socket."""
    secrets: set[str] = set()
    for name in setting_sources.SECRETS:
        variable = f"{setting_sources.PREFIX}{name.upper()}"
        secrets.update((variable, f"{variable}_FILE"))
    return {name: value for name, value in os.environ.items() if name not in secrets}
