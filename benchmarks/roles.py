"""CPU and memory of each role between two instants, for whole process trees."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import cpu, memory
from poller import errors

#: Role -> its processes.
Roles = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Used:
    """The resources that were used between two instants of the wall clock."""

    began_ms: int
    ended_ms: int
    cpu_s: Mapping[str, float]
    others_s: float  # CPU of all other processes on this machine
    began_mb: Mapping[str, float]
    ended_mb: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return (self.ended_ms - self.began_ms) / 1000


class Meter:
    """Measures from its construction until `read`."""

    def __init__(self, roles: Roles) -> None:
        self._roles = roles
        self._mb = _each(roles, memory.megabytes)
        self._at_ms, self._cpu_s, self._machine_s = self._now()

    def read(self) -> Used:
        """Return the resources used so far. Raises StoreUnavailable if a process has ended."""
        at_ms, used, machine_s = self._now()
        spent = {role: used[role] - self._cpu_s[role] for role in self._roles}
        others_s = machine_s - self._machine_s - sum(spent.values())
        return Used(
            self._at_ms, at_ms, spent, others_s, self._mb, _each(self._roles, memory.megabytes)
        )

    def _now(self) -> tuple[int, dict[str, float], float]:
        return time.time_ns() // 1_000_000, _each(self._roles, cpu.tree_s), cpu.machine_s()


def _each(roles: Roles, of: Callable[[int], float]) -> dict[str, float]:
    try:
        return {role: sum(map(of, pids)) for role, pids in roles.items()}
    except OSError:
        raise errors.StoreUnavailable(
            f"one of {', '.join(roles)} ended during the benchmark"
        ) from None
