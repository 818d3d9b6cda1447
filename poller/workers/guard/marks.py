"""Whose code runs at this moment, on the loop and in threads? A row of numbers in memory that outlives the process.

Who reads it after a crash gets the targets to blame; after a fault in C code `faulthandler` says which thread it was.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

#: The loop's cells: the target whose code runs now (0: none), number of its flight, steps so far.
TARGET, FLIGHT, STEPS = 0, 1, 2
#: Three more cells for each thread: its ident, target and flight.
_THREADS_AT, _WIDTH, THREADS = 3, 3, 64
CELLS = _THREADS_AT + _WIDTH * THREADS
SIZE = 8 * CELLS
#: Room that is kept for what `faulthandler` prints, and how much of it is read: it tells of all threads.
FAULT_SIZE, FAULT_READ = 4096, 2**18

#: Who was found guilty while the process still lived.
_GUILTY = re.compile(r"target (\d{1,18}) of flight (\d{1,18}): ")
_THREAD = re.compile(r"Current thread 0x([0-9a-f]+)")
#: What it prints of the thread that had the fault.
_CURRENT = re.compile(r"(?:Current thread|Stack).*?(?=\n\n|\nThread|\Z)", re.DOTALL)
_PLACE = re.compile(r'File "(?:[^"]*/)?([^"/]+)", line (\d+) in (\S+)')

#: A target, and the number of its flight.
Whose = tuple[int, int]


class ThreadMarks:
    """Threads that run a collector's code say so here; more than there are cells for go unmarked."""

    def __init__(self, cells: memoryview) -> None:
        self._cells = cells
        self._free = list(range(THREADS))
        self._guard = threading.Lock()

    @contextmanager
    def marked(self, whose: Whose | None) -> Iterator[None]:
        with self._guard:
            slot = self._free.pop() if whose and self._free else None
        if slot is None or whose is None:
            yield
            return
        at = _THREADS_AT + slot * _WIDTH
        self._cells[at], self._cells[at + 2] = threading.get_ident(), whose[1]
        self._cells[at + 1] = whose[0]
        try:
            yield
        finally:
            self._cells[at + 1] = 0
            with self._guard:
                self._free.append(slot)


def on_loop(cells: Sequence[int]) -> Whose:
    """Whose code runs there; target 0 is nobody."""
    return cells[TARGET], cells[FLIGHT]


def verdict(guilty: Whose, text: str) -> str:
    """A fault that says whose it is: until the process has ended, others may run."""
    return f"target {guilty[0]} of flight {guilty[1]}: {text}"


def blamed(cells: Sequence[int], fault: str = "") -> list[Whose]:
    """Who may have ended the process: who the fault names, else the thread that had it, else the loop's code, else all
    that ran in threads."""
    if guilty := _GUILTY.match(fault):
        whose = int(guilty[1]), int(guilty[2])
        return [whose] if whose[0] else []
    threads = {
        cells[at]: (cells[at + 1], cells[at + 2])
        for at in range(_THREADS_AT, CELLS, _WIDTH)
        if cells[at + 1]
    }
    found = _THREAD.search(fault)
    if found and int(found[1], 16) in threads:
        return [threads[int(found[1], 16)]]
    if cells[TARGET]:
        return [on_loop(cells)]
    return list(threads.values())


def read_fault(descriptor: int, at: int) -> str:
    """What it printed there: its first line, and the thread that had the fault."""
    text = os.pread(descriptor, FAULT_READ, at).rstrip(b"\0").decode(errors="replace")
    found = _CURRENT.search(text)
    return f"{text.partition(chr(10))[0]}\n{found[0]}" if found else text[:FAULT_SIZE]


def place(fault: str) -> str:
    """Where the fault was: file, line and function, never a value. Empty if it does not say."""
    found = _PLACE.search(fault)
    return f"{found[1]}:{found[2]} {found[3]}" if found else ""
