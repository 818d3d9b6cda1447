"""The child: one collector, as many polls side by side as come, until the socket closes or the worker dies.

Started with the numbers of its socket and of its page of marks, and with the worker's process id.
"""

from __future__ import annotations

import asyncio
import ctypes
import faulthandler
import mmap
import os
import resource
import signal
import socket
import sys
import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import uvloop

from poller import errors, plugins
from poller.collectors import credentials, registry
from poller.collectors.api import Closeable, Collector, Poll
from poller.collectors.poll_runner import run_poll
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome, clean, from_error
from poller.domain.scheduling import session_limits
from poller.observability import logs
from poller.security.redaction import Redactor
from poller.workers.guard import marks, running_code
from poller.workers.guard.child import child_messages, frames
from poller.workers.guard.child.child_messages import Hello
from poller.workers.guard.collector_threads import Limits, Threads

_PR_SET_PDEATHSIG = 1
#: A thread's stack counts as memory from its start; the usual 8 MB each would leave little.
_STACK_BYTES = 1 * 2**20
#: With so much of its memory in use a child asks to be replaced: it leaks, and the next poll may be the one too many.
_FULL = 0.8
#: For the devices it kept sessions with; the worker waits hardly longer.
_GOOD_BYE_S = 0.5
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class _Known:
    """A target as this process knows it; its memory goes when it is edited."""

    version: int
    options: Any
    memory: dict[str, Any] = field(default_factory=dict)


class Child:
    def __init__(self, hello: Hello, cells: memoryview) -> None:
        points = [
            point for point in plugins.points(registry.GROUP)[0] if point.name == hello.collector
        ]
        self._hello = hello
        self._registry = registry.load(points)
        self._collector: Collector = self._registry.get(hello.collector)
        self._models = {model.kind: model for model in self._collector.credentials}
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._polls: dict[int, asyncio.Task[None]] = {}
        self._sessions = Sessions(
            session_limits.Rules(session_limits.Limits(**hello.session), {}, hello.sessions)
        )
        self._redactor = Redactor()
        self._cells = cells
        self._tired = False
        logs.configure(hello.log_level, hello.log_format, self._redactor.fields)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the worker closes the socket."""
        limits = Limits(self._hello.threads, self._hello.stuck)
        threads = Threads(
            limits, marks.ThreadMarks(self._cells), lambda _: self._hello.collector, self._tire
        )
        loop = asyncio.get_running_loop()
        loop.set_default_executor(threads)
        loop.set_task_factory(running_code.TaskFactory(self._cells))
        writer.write(frames.pack({"ready": True}))
        while (frame := await frames.read(reader)) is not None:
            head, _ = frame
            if "cut" in head:
                self._cut(head["cut"])
            else:
                self._polls[head["poll"]] = loop.create_task(self._poll(head, writer))
        with suppress(Exception):  # a plugin may raise anything, and we leave anyway
            await asyncio.wait_for(self._say_good_bye(), _GOOD_BYE_S)

    async def _say_good_bye(self) -> None:
        await self._sessions.close()
        if isinstance(self._collector, Closeable):
            await self._collector.close()

    def _cut(self, number: int) -> None:
        if number in self._polls:
            self._polls[number].cancel()

    def _tire(self, _: str = "") -> None:
        """No more threads, or no more memory: another process shall take over."""
        self._tired = True

    async def _poll(self, head: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        number = int(head["poll"])
        running_code.mark(head["target_id"], number)
        try:
            result = await asyncio.get_running_loop().create_task(self._outcome(head))
            writer.write(self._said(number, result, head["shape"]))
            if self._tired or _data_bytes() > _FULL * self._hello.memory_mb * 2**20:
                writer.write(frames.pack({"tired": True}))
        finally:
            del self._polls[number]

    def _said(self, number: int, result: Outcome, known_shape: int | None) -> bytes:
        try:
            return child_messages.answer(number, result, known_shape)
        except frames.BadFrame as error:
            crash = errors.CollectorCrashed(f"collector {self._hello.collector} yielded {error}")
            return child_messages.answer(number, from_error(crash), None)

    async def _outcome(self, head: dict[str, Any]) -> Outcome:
        try:
            known, credential = self._target(head), self._credential(head["credential"])
        except (
            errors.ConfigError
        ) as error:  # the worker has the same collector, and found nothing wrong
            return from_error(errors.CollectorCrashed(clean(str(error))))
        deadline = asyncio.get_running_loop().time() + head["budget_s"]
        where = head["target_id"], head["device"], head["address"]
        poll = Poll(*where, known.options, credential, deadline, known.memory, self._sessions)
        return await run_poll(self._collector, poll)

    def _target(self, head: dict[str, Any]) -> _Known:
        target_id, version = head["target_id"], head["version"]
        known = self._known.get(target_id)
        if known is None or known.version != version:
            options = self._registry.options(self._hello.collector, head["options"])
            known = self._known[target_id] = _Known(version, options)
        self._known.move_to_end(target_id)
        while len(self._known) > self._hello.targets:
            self._known.popitem(last=False)
        return known

    def _credential(self, text: str | None) -> credentials.Credential | None:
        if text is None:
            return None
        opened = credentials.from_json(text, self._models)
        for secret in opened.secrets():
            self._redactor.remember(secret)
        return opened


def _data_bytes() -> int:
    """What counts against the limit: private writable memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * _PAGE_BYTES


def _die_with(worker: int) -> None:
    """Also when it is killed, and even if a collector keeps the interpreter to itself."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != worker:
        os._exit(0)


def _limit(memory_mb: int) -> None:
    """An allocation beyond it fails where it is made. No core file: it would hold credentials."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    threading.stack_size(_STACK_BYTES)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = memory_mb * 2**20
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


async def _run(sock: socket.socket, cells: memoryview) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    frame = await frames.read(reader)
    if frame is None:
        return
    hello = Hello(**frame[0])
    _limit(hello.memory_mb)
    try:
        child = Child(hello, cells)
    except errors.ConfigError as error:
        writer.write(frames.pack({"failed": clean(str(error))}))
        writer.close()
        await writer.wait_closed()
        return
    await child.serve(reader, writer)
    os._exit(0)  # whatever still runs here, nobody waits for it


def main(sock: int, page: int, worker: int) -> None:
    _die_with(worker)
    for number in (signal.SIGINT, signal.SIGTERM):  # the worker says when it is time to go
        signal.signal(number, signal.SIG_IGN)
    os.lseek(page, marks.SIZE, os.SEEK_SET)
    faulthandler.enable(page)
    cells = memoryview(mmap.mmap(page, marks.SIZE)).cast("q")
    uvloop.run(_run(socket.socket(fileno=sock), cells))
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
