"""The CPU time of processes, exact from the accounts of the kernel, not sampled."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

#: The CPU clock of a process, see clock_getcpuclockid(3). It counts nanoseconds; /proc counts
#: hundredths of a second.
_SCHEDULER_CLOCK = 2
_TICKS = os.sysconf("SC_CLK_TCK")


def seconds(pid: int) -> float:
    """Return the CPU time of a process, its threads and its ended children. Raises OSError."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK) + sum(map(int, fields[13:15])) / _TICKS


def tree_s(pid: int) -> float:
    """Return the CPU time of a process and all its descendants, as prefork children."""
    return seconds(pid) + sum(_or_nothing(child) for child in descendants(pid))


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children and so on."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # the process has just ended
            children.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(
                int(path.parent.name)
            )
    found = [pid]
    for one in found:  # the list grows during the loop
        found += children.get(one, ())
    return found[1:]


def _or_nothing(pid: int) -> float:
    """Return 0 for a process that has ended: the account of its parent includes it."""
    with contextlib.suppress(OSError):
        return seconds(pid)
    return 0.0


def machine_s() -> float:
    """Return the CPU time of all processes, and the time that the hypervisor stole."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, _idle, _waiting, irq, softirq, stolen = map(int, fields)
    return (user + nice + system + irq + softirq + stolen) / _TICKS
