"""The child: one collector and its polls, until the socket closes or the worker dies.

Arguments: the descriptors of its socket and of its marks file, and the worker's process id.
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
from poller.security import process_memory
from poller.security.redaction import Redactor
from poller.workers.guard import running_code
from poller.workers.guard.child import child_messages, frames
from poller.workers.guard.child.child_messages import ChildConfig
from poller.workers.guard.collector_incidents import CollectorIncidents
from poller.workers.guard.collector_threads import CollectorThreads, ThreadLimits

_PR_SET_PDEATHSIG = 1
#: A thread's stack counts as memory from its start; the usual 8 MB each would leave little.
_STACK_BYTES = 1 * 2**20
#: A child that uses this share of its memory asks to be replaced: its collector leaks.
_FULL_SHARE = 0.8
#: The time to close the sessions with devices. The worker waits hardly longer.
_CLOSE_S = 0.5
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class _CachedTarget:
    """Options and memory of a target. An edited target is cached anew, with an empty memory."""

    version: int
    options: Any
    memory: dict[str, Any] = field(default_factory=dict)


class Child:
    def __init__(self, config: ChildConfig, cells: memoryview) -> None:
        points, _ = plugins.points(registry.GROUP)
        own = [point for point in points if point.name == config.collector]
        self._config = config
        self._registry = registry.load(own)
        self._collector: Collector = self._registry.get(config.collector)
        self._models = {model.kind: model for model in self._collector.credentials}

        self._targets: OrderedDict[int, _CachedTarget] = OrderedDict()
        self._polls: dict[int, asyncio.Task[None]] = {}
        limits = session_limits.Limits(**config.session)
        self._sessions = Sessions(session_limits.Rules(limits, {}, config.sessions))
        self._redactor = Redactor()
        self._cells = cells
        self._incidents = CollectorIncidents()
        logs.configure(config.log_level, config.log_format, self._redactor.fields)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until the worker closes the socket."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(self._threads())
        loop.set_task_factory(running_code.TaskFactory(self._cells))
        writer.write(frames.pack({"ready": True}))

        while True:
            frame = await frames.read(reader)
            if frame is None:
                break
            head, _ = frame
            if "cut" in head:
                self._cancel(head["cut"])
            else:
                self._polls[head["poll"]] = loop.create_task(self._poll(head, writer))

        with suppress(Exception):  # door: a plugin's close; the process ends anyway
            await asyncio.wait_for(self._close(), _CLOSE_S)

    def _threads(self) -> CollectorThreads:
        """Return the executor; all its threads are of the one collector."""
        limits = ThreadLimits(self._config.threads, self._config.stuck)
        marks = running_code.ThreadMarks(self._cells)
        return CollectorThreads(limits, marks, lambda _: self._config.collector, self._incidents)

    async def _close(self) -> None:
        await self._sessions.close()
        if isinstance(self._collector, Closeable):
            await self._collector.close()

    def _cancel(self, number: int) -> None:
        if number in self._polls:
            self._polls[number].cancel()

    async def _poll(self, head: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        number = int(head["poll"])
        running_code.mark(head["target_id"], number)
        try:
            outcome = await asyncio.get_running_loop().create_task(self._collect(head))
            writer.write(self._pack_response(number, outcome, head["shape"]))
            if self._is_exhausted():
                writer.write(frames.pack({"tired": True}))
        finally:
            del self._polls[number]

    def _is_exhausted(self) -> bool:
        """Whether another child has to take over: stuck threads, or little memory left."""
        if self._incidents:
            return True
        limit_bytes = self._config.memory_mb * 2**20
        return _data_bytes() > _FULL_SHARE * limit_bytes

    def _pack_response(self, number: int, outcome: Outcome, known_shape: int | None) -> bytes:
        try:
            return child_messages.pack_response(number, outcome, known_shape)
        except frames.BadFrame as error:
            text = f"collector {self._config.collector} yielded {error}"
            crash = from_error(errors.CollectorCrashed(text))
            return child_messages.pack_response(number, crash, None)

    async def _collect(self, head: dict[str, Any]) -> Outcome:
        try:
            target = self._target(head)
            credential = self._credential(head["credential"])
        except errors.ConfigError as error:  # the worker's copy of the collector accepted them
            return from_error(errors.CollectorCrashed(clean(str(error))))
        poll = Poll(
            target_id=head["target_id"],
            device=head["device"],
            address=head["address"],
            options=target.options,
            credential=credential,
            deadline=asyncio.get_running_loop().time() + head["budget_s"],
            memory=target.memory,
            sessions=self._sessions,
            is_behind=head["is_behind"],
        )
        return await run_poll(self._collector, poll)

    def _target(self, head: dict[str, Any]) -> _CachedTarget:
        target_id = head["target_id"]
        version = head["version"]
        target = self._targets.get(target_id)
        if target is None or target.version != version:
            options = self._registry.options(self._config.collector, head["options"])
            target = _CachedTarget(version, options)
            self._targets[target_id] = target

        self._targets.move_to_end(target_id)
        while len(self._targets) > self._config.targets:
            self._targets.popitem(last=False)
        return target

    def _credential(self, text: str | None) -> credentials.Credential | None:
        if text is None:
            return None

        credential = credentials.from_json(text, self._models)
        for secret in credential.secrets():
            self._redactor.remember(secret)
        return credential


def _data_bytes() -> int:
    """Return the private writable memory, which counts against the limit."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * _PAGE_BYTES


def _die_with(worker: int) -> None:
    """Have the kernel kill this process when the worker dies, even while a collector spins."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != worker:
        os._exit(0)


def _limit_memory(memory_mb: int) -> None:
    """Make an allocation beyond the limit fail where it is made."""
    process_memory.forbid_core_files()
    threading.stack_size(_STACK_BYTES)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = memory_mb * 2**20
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


async def _run(sock: socket.socket, cells: memoryview) -> None:
    reader, writer = await asyncio.open_unix_connection(sock=sock)
    frame = await frames.read(reader)
    if frame is None:
        return

    head, _ = frame
    config = ChildConfig(**head)
    _limit_memory(config.memory_mb)
    try:
        child = Child(config, cells)
    except errors.ConfigError as error:
        writer.write(frames.pack({"failed": clean(str(error))}))
        writer.close()
        await writer.wait_closed()
        return
    await child.serve(reader, writer)
    os._exit(0)  # tasks and threads that still run end with the process


def main(socket_number: int, marks_number: int, worker: int) -> None:
    _die_with(worker)
    for number in (signal.SIGINT, signal.SIGTERM):  # only the worker ends the child
        signal.signal(number, signal.SIG_IGN)
    os.lseek(marks_number, running_code.SIZE, os.SEEK_SET)
    faulthandler.enable(marks_number)
    cells = memoryview(mmap.mmap(marks_number, running_code.SIZE)).cast("q")
    uvloop.run(_run(socket.socket(fileno=socket_number), cells))
    os._exit(0)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:4]))
