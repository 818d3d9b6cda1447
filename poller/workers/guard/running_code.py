"""Marks of the target whose code runs now, on the event loop and in threads.

The marks are numbers (cells) in memory that outlives the process. After a crash they name the
target to blame; after a fault in C code the output of `faulthandler` names the thread.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, ContextVar
from pathlib import Path
from typing import Any, NamedTuple

#: Cells of the loop: the target whose code runs (0: none), the number of its batch, the steps so
#: far.
TARGET = 0
BATCH = 1
STEPS = 2
#: Each thread has three more cells: its ident, its target and the number of the target's batch.
_FIRST_THREAD_CELL = 3
_CELLS_PER_THREAD = 3
_THREADS = 64
CELLS = _FIRST_THREAD_CELL + _CELLS_PER_THREAD * _THREADS
SIZE = 8 * CELLS
#: Bytes reserved for the output of `faulthandler`.
FAULT_SIZE = 4096
#: Bytes of that output that are read: it describes all threads.
_FAULT_READ_SIZE = 2**18

#: A fault for which a live process has already named the target to blame.
_BLAMED = re.compile(r"target (\d{1,18}) of flight (\d{1,18}): ")
_THREAD_IDENT = re.compile(r"Current thread 0x([0-9a-f]+)")
#: The stack of the thread that had the fault.
_FAULTY_STACK = re.compile(r"(?:Current thread|Stack).*?(?=\n\n|\nThread|\Z)", re.DOTALL)
_LOCATION = re.compile(r'File "(?:[^"]*/)?([^"/]+)", line (\d+) in (\S+)')


class RunningPoll(NamedTuple):
    """A target and the number of its batch in the black box.

    Target 0 means that no target's code runs.
    """

    target_id: int
    batch_number: int


_current: ContextVar[RunningPoll | None] = ContextVar("running_poll", default=None)


def mark(target_id: int, batch_number: int) -> None:
    """Attribute all tasks that this context starts from now on to a target and its batch."""
    _current.set(RunningPoll(target_id, batch_number))


def current_poll() -> RunningPoll | None:
    """Return the poll that the calling code belongs to; None for the platform's own code."""
    return _current.get()


class TaskFactory:
    """A task factory that marks every step of a poll's tasks, and of the tasks these start.

    A step costs a few writes to memory. Callbacks that a collector leaves with the loop are not
    marked.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells

    def __call__(
        self, loop: asyncio.AbstractEventLoop, work: Any, *, context: Context | None = None
    ) -> asyncio.Task[Any]:
        poll = _current.get() if context is None else context.get(_current)
        if poll is not None:
            work = _MarkedCoroutine(work, self._cells, poll)
        return asyncio.Task(work, loop=loop, context=context)


class _MarkedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine that writes its target and batch to the cells around each of its steps."""

    __slots__ = ("_batch_number", "_cells", "_target_id", "_work")

    def __init__(
        self, work: Coroutine[Any, Any, Any], cells: memoryview, poll: RunningPoll
    ) -> None:
        self._work = work
        self._cells = cells
        self._target_id, self._batch_number = poll

    def send(self, value: Any) -> Any:
        return self._step(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._work.throw, *error)

    def _step(self, resume: Callable[..., Any], *arguments: Any) -> Any:
        cells = self._cells
        cells[STEPS] += 1
        cells[BATCH] = self._batch_number
        cells[TARGET] = self._target_id
        try:
            return resume(*arguments)
        finally:
            cells[TARGET] = 0

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()


class ThreadMarks:
    """Marks of threads that run a collector's code.

    Threads beyond the number of cells are not marked.
    """

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._free = list(range(_THREADS))
        self._lock = threading.Lock()

    @contextmanager
    def marked(self, poll: RunningPoll | None) -> Iterator[None]:
        """Mark the calling thread while the context lasts."""
        slot = None
        if poll is not None:
            with self._lock:
                slot = self._free.pop() if self._free else None
        if poll is None or slot is None:
            yield
            return

        first = _FIRST_THREAD_CELL + slot * _CELLS_PER_THREAD
        self._cells[first] = threading.get_ident()
        self._cells[first + 2] = poll.batch_number
        self._cells[first + 1] = poll.target_id  # last: it makes the other two valid
        try:
            yield
        finally:
            self._cells[first + 1] = 0
            with self._lock:
                self._free.append(slot)


def on_loop(cells: Sequence[int]) -> RunningPoll:
    """Return the poll whose code runs on the loop."""
    return RunningPoll(cells[TARGET], cells[BATCH])


def in_threads(cells: Sequence[int]) -> dict[int, RunningPoll]:
    """Return the polls whose code runs in threads, by thread ident."""
    polls = {}
    for first in range(_FIRST_THREAD_CELL, CELLS, _CELLS_PER_THREAD):
        end = first + _CELLS_PER_THREAD
        ident, target_id, batch_number = cells[first:end]
        if target_id:
            polls[ident] = RunningPoll(target_id, batch_number)
    return polls


def suspects(cells: Sequence[int], fault: str = "") -> list[RunningPoll]:
    """Return the polls whose code may have ended the process, the most certain evidence first.

    The fault names the poll; else the thread that had the fault runs it; else it is the loop's;
    else every poll in a thread is a suspect.
    """
    named = _BLAMED.match(fault)
    if named:
        poll = RunningPoll(int(named[1]), int(named[2]))
        return [poll] if poll.target_id else []

    threads = in_threads(cells)
    thread = _THREAD_IDENT.search(fault)
    if thread:
        ident = int(thread[1], 16)
        if ident in threads:
            return [threads[ident]]

    if cells[TARGET]:
        return [on_loop(cells)]
    return list(threads.values())


def blame(poll: RunningPoll, text: str) -> str:
    """Return a fault text that names the poll: other code may run before the process has ended."""
    return f"target {poll.target_id} of flight {poll.batch_number}: {text}"


def read_fault(descriptor: int, offset: int) -> str:
    """Return the first line of `faulthandler`'s output, and the stack of the faulty thread."""
    output = os.pread(descriptor, _FAULT_READ_SIZE, offset)
    text = output.rstrip(b"\0").decode(errors="replace")
    stack = _FAULTY_STACK.search(text)
    if stack is None:
        return text[:FAULT_SIZE]

    first_line = text.partition("\n")[0]
    return f"{first_line}\n{stack[0]}"


def fault_location(fault: str) -> str:
    """Return file, line and function of a fault, never a value; empty if the fault names none."""
    location = _LOCATION.search(fault)
    if location is None:
        return ""
    file, line, function = location.groups()
    return f"{file}:{line} {function}"


def thread_location(thread_id: int, frames: int = 4) -> str:
    """Return files, lines and functions of a thread's stack, the innermost last; never a value."""
    frame = sys._current_frames().get(thread_id)
    if frame is None:
        return ""

    stack = list(traceback.walk_stack(frame))
    parts = []
    for each, line in reversed(stack[:frames]):
        code = each.f_code
        file = Path(code.co_filename).name
        parts.append(f"{file}:{line} {code.co_name}")
    return " > ".join(parts)
