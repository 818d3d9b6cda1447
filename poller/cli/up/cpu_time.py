"""The CPU time of a role: of its current process, and of those that ended before."""

from __future__ import annotations

import os

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")


class CpuTime:
    """User and system time in milliseconds. It never falls when a process is replaced.

    A process that ended counts with the time that was read last.
    """

    def __init__(self) -> None:
        self._ended_ms = 0.0
        self._current_ms = 0.0

    @property
    def total_ms(self) -> float:
        return self._ended_ms + self._current_ms

    def start_process(self) -> None:
        """Begin with a new process; the last one has ended."""
        self._ended_ms += self._current_ms
        self._current_ms = 0.0

    def read(self, pid: int) -> None:
        """Read the time of the current process."""
        self._current_ms = max(self._current_ms, _process_ms(pid))


def _process_ms(pid: int) -> float:
    """User and system CPU time of a process; 0 once it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0

    user = int(fields[11])
    system = int(fields[12])
    return (user + system) * _TICK_MS
