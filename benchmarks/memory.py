"""How much memory does a process take? Pages that several share are split among them, so that sums are true."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from benchmarks import cpu

_PSS = re.compile(r"^Pss:\s+(\d+) kB", re.MULTILINE)


def megabytes(pid: int) -> float:
    """Of a process and all its living descendants."""
    return sum(_kilobytes(one) for one in (pid, *cpu.descendants(pid))) / 1024


def _kilobytes(pid: int) -> int:
    with contextlib.suppress(OSError):  # it has just ended
        found = _PSS.search(Path(f"/proc/{pid}/smaps_rollup").read_text())
        return int(found[1]) if found else 0
    return 0
