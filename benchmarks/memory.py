"""The memory of processes. Shared pages are divided among their users, so that sums are correct."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from benchmarks import cpu

_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def megabytes(pid: int) -> float:
    """Return the memory of a process and all its descendants."""
    return sum(_kilobytes(one) for one in (pid, *cpu.descendants(pid))) / 1024


def _kilobytes(pid: int) -> int:
    with contextlib.suppress(OSError):  # the process has just ended
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        return int(found[1]) if found else 0
    return 0
