"""The message of a job run: one scope, and its due plans in order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from poller.domain.jobs.job_run import Origin, Plan

#: Instants from 1970 to the year 9999, in ms.
_LATEST_MS = 253_402_300_799_000


class RunMessage(NamedTuple):
    """The arguments of the task `poller.run_job`. The first plan is run, the others follow it."""

    job: str
    scope_kind: str
    scope_id: str
    plans_ms: tuple[int, ...]
    dispatched_ms: int  # by the clock of the database
    origin: Origin = Origin.SCHEDULE

    @property
    def plan(self) -> Plan:
        """The plan that is run first."""
        return Plan(self.job, self.scope_kind, self.scope_id, self.plans_ms[0])

    @property
    def rest(self) -> RunMessage | None:
        """The message of the plans after the first; None if there is none."""
        plans_ms = self.plans_ms[1:]
        return self._replace(plans_ms=plans_ms) if plans_ms else None

    @property
    def names(self) -> dict[str, str]:
        """The first run for people and log lines: its job, scope and plan."""
        return {"job": self.job, "scope": self.plan.scope, "plan": _instant(self.plans_ms[0])}

    @property
    def text(self) -> str:
        """The message for people: `('prune', 'global', '2026-11-18T02:00:00Z')`."""
        words = list(self.names.values())
        more = len(self.plans_ms) - 1
        if more:
            words.append(f"and {more} more")
        return f"({', '.join(repr(word) for word in words)})"

    def arguments(self) -> tuple[Any, ...]:
        """The arguments as JSON has them."""
        return (*self[:3], list(self.plans_ms), self.dispatched_ms, self.origin.value)


def parse(arguments: Sequence[Any]) -> RunMessage:
    """The message of a task's arguments. Raises ValueError for any others."""
    if len(arguments) != len(RunMessage._fields):
        raise ValueError("it is a job run without job, scope, plans, instant and origin")
    *names, plans_ms, dispatched_ms, origin = arguments
    if not all(type(name) is str and name for name in names):
        raise ValueError("it is a job run without job and scope")
    if type(plans_ms) is not list or not plans_ms or not all(map(_is_instant, plans_ms)):
        raise ValueError("it is a job run without plans")
    if not _is_instant(dispatched_ms):
        raise ValueError("it is a job run without the instant of its message")
    if origin not in list(Origin):
        raise ValueError("it is a job run of unknown origin")
    job, kind, scope_id = names
    return RunMessage(job, kind, scope_id, tuple(plans_ms), dispatched_ms, Origin(origin))


def fault(arguments: Sequence[Any]) -> str:
    """The fault of the arguments of a job run; "" if they have none."""
    try:
        parse(arguments)
    except ValueError as error:
        return str(error)
    return ""


def _is_instant(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LATEST_MS


def _instant(instant_ms: int) -> str:
    at = datetime.fromtimestamp(instant_ms / 1000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
