"""Replaces workers one after the other, so that polls go on while a plugin is taken up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from poller.cli.up.process_supervisor import Child, RoleFilter, Supervisor

#: A successor that is not ready after this time is not waited for any longer.
READY_S = 30.0
ASK_EVERY_S = 0.5


class WorkerSuccession:
    """The next worker is stopped when the successor of the one before is ready.

    `ready_pids` has the processes of the workers that are ready.
    """

    def __init__(
        self, supervisor: Supervisor, patience_s: float, ready_pids: Callable[[], Collection[int]]
    ) -> None:
        self._supervisor = supervisor
        self._patience_s = patience_s
        self._ready_pids = ready_pids
        self._waiting: list[Child] = []
        self._current: Child | None = None
        self._old_pid = 0
        self._until_mono = 0.0
        self._ask_mono = 0.0

    def begin(self, chosen: RoleFilter) -> None:
        """Replace all of these. Replacements that were under way start anew."""
        self._waiting = [each for each in self._supervisor.children if chosen(each.role.name)]
        self._current = None
        self.check()

    def check(self) -> None:
        """Replace the next one when it is its turn. Call this a few times a second."""
        now = time.monotonic()
        if self._current is not None and not self._is_over(self._current, now):
            return
        self._current = self._waiting.pop(0) if self._waiting else None
        if self._current is not None:
            name = self._current.role.name
            self._old_pid = _pid(self._current)
            self._until_mono = now + self._patience_s + READY_S
            self._supervisor.replace(name.__eq__, self._patience_s)

    def _is_over(self, child: Child, now: float) -> bool:
        if not self._waiting or now >= self._until_mono:
            return True
        if now < self._ask_mono or _pid(child) == self._old_pid or not child.running:
            return False
        self._ask_mono = now + ASK_EVERY_S
        return _pid(child) in self._ready_pids()


def _pid(child: Child) -> int:
    return child.process.pid if child.process is not None else 0
