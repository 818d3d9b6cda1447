"""What did a process cost? Exact, from the kernel's own accounts; nothing is sampled."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

#: The process's own CPU clock counts nanoseconds (clock_getcpuclockid(3) gives this number); /proc only hundredths.
_SCHEDULER_CLOCK = 2
_TICKS = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """CPU time of a process, all its threads and its ended children so far. Raises OSError when there is none."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK) + sum(map(int, fields[13:15])) / _TICKS


def tree_s(pid: int) -> float:
    """The same with all its living descendants: prefork's children, a child for isolation."""
    return seconds(pid) + sum(_or_nothing(child) for child in descendants(pid))


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, as they are now."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    found = [pid]
    for one in found:  # grows while it is read
        found += children.get(one, ())
    return found[1:]


def _or_nothing(pid: int) -> float:
    """0 for one that ended meanwhile: then its parent's account has it."""
    with contextlib.suppress(OSError):
        return seconds(pid)
    return 0.0


def machine_s() -> float:
    """CPU time that all processes together have used so far, and what the hypervisor kept for others."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, fields)
    return (user + nice + system + irq + softirq + stolen) / _TICKS
