"""The terms of a job: all of its spec that is data. Workers announce them, the leader reads them.

A spec (`poller.jobs.api.JobSpec`) adds the functions.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from poller import errors
from poller.domain.inventory import naming
from poller.domain.jobs import job_schedule, wall_clock
from poller.domain.jobs.job_schedule import Cadence, Cron, Schedule

LONGEST_NAME = 100
LONGEST_DESCRIPTION = 500
LONGEST_S = 366 * 86_400.0
MOST = 1000  # attempts, and plans in one go
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class CatchUp(enum.StrEnum):
    """The rule for plans that were missed."""

    LATEST_ONLY = "latest_only"  # the newest plan is run, older ones are skipped
    EVERY_PLAN = "every_plan"  # each plan within the window is run, oldest first


@dataclass(frozen=True, slots=True)
class JobTerms:
    """How a job is planned, run and retried. Durations are in seconds."""

    name: str
    schedule: Schedule
    description: str = ""
    delay_s: float = 0.0  # a plan is attempted this long after its instant
    run_timeout_s: float = 600.0
    heartbeat_s: float = 10.0
    stale_timeout_s: float = 60.0  # after the last heartbeat the run counts as abandoned
    reentrant: bool = True  # an abandoned run may be run again by itself
    max_attempts: int = 3
    retry_delays_s: tuple[float, ...] = (60.0, 300.0, 900.0)  # the last one is used again
    catch_up: CatchUp = CatchUp.LATEST_ONLY
    catch_up_window_s: float = 86_400.0  # for `every_plan`
    max_plans_per_tick: int = 10  # for `every_plan`, in each scope
    overlap: bool = False  # a plan may start while an older one of its scope runs
    names_plans: bool = False  # it has a `plans` hook, and a plan of the schedule may have no run
    names_scopes: bool = False  # it has a `scopes` function, and may have no scope at all

    def to_json(self) -> dict[str, Any]:
        """The terms as a JSON object."""
        return {**asdict(self), "schedule": self.schedule.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> JobTerms:
        """The terms of `to_json`. Fields of a later release are left out. Raises InvalidInput."""
        known = {field.name for field in fields(cls)}
        try:
            values = {name: part for name, part in value.items() if name in known}
            values["schedule"] = job_schedule.from_json(value["schedule"])
            values["catch_up"] = CatchUp(value["catch_up"])
            values["retry_delays_s"] = tuple(value["retry_delays_s"])
            terms = cls(**values)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            name = value.get("name") if isinstance(value, Mapping) else ""
            text = fault_text(name, "terms", f"they cannot be read: {error}")
            raise errors.InvalidInput(text) from None
        terms.check()
        return terms

    def check(self) -> None:
        """Refuse terms that cannot work. Raises InvalidInput that names the job and the field."""
        for field, fault in self._faults():
            if fault:
                raise errors.InvalidInput(fault_text(self.name, field, fault))

    def _faults(self) -> list[tuple[str, str]]:
        """Each field with its fault, "" for none."""
        return [
            ("name", _name_fault(self.name)),
            ("schedule", schedule_fault(self.schedule)),
            ("description", _text_fault(self.description, LONGEST_DESCRIPTION)),
            ("delay_s", _least(self.delay_s, 0)),
            ("run_timeout_s", _above(self.run_timeout_s, 0)),
            ("heartbeat_s", _above(self.heartbeat_s, 0)),
            ("stale_timeout_s", self._stale_fault()),
            ("reentrant", _flag_fault(self.reentrant)),
            ("max_attempts", _count_fault(self.max_attempts)),
            ("retry_delays_s", _delays_fault(self.retry_delays_s)),
            ("catch_up", _catch_up_fault(self.catch_up)),
            ("catch_up_window_s", _least(self.catch_up_window_s, 0)),
            ("max_plans_per_tick", _count_fault(self.max_plans_per_tick)),
            ("overlap", _flag_fault(self.overlap)),
            ("names_plans", _flag_fault(self.names_plans)),
            ("names_scopes", _flag_fault(self.names_scopes)),
        ]

    def _stale_fault(self) -> str:
        fault = _above(self.stale_timeout_s, 0)
        if fault or _above(self.heartbeat_s, 0) or self.stale_timeout_s >= 2 * self.heartbeat_s:
            return fault
        return (
            f"{self.stale_timeout_s:g} is less than two heartbeats of {self.heartbeat_s:g} s: "
            "one late heartbeat would end the run"
        )


def fault_text(name: Any, field: str, fault: str) -> str:
    """The text of an error: job, field and fault."""
    return f'job "{naming.printable(str(name))[:LONGEST_NAME]}": {field}: {fault}'


def _name_fault(name: Any) -> str:
    if not isinstance(name, str):
        return f"{_shown(name)} is not a text"
    if not name:
        return "it is empty: give a name"
    if len(name) > LONGEST_NAME:
        return f"it has more than {LONGEST_NAME} characters"
    if _NAME.fullmatch(name) is None:
        return "it takes letters a to z, digits, - _ and ., and begins with a letter or digit"
    return ""


def schedule_fault(schedule: Any) -> str:
    """The fault of a schedule; "" if it has none."""
    if isinstance(schedule, Cron):
        return _cron_fault(schedule.expression, schedule.timezone)
    if not isinstance(schedule, Cadence):
        return "give every_s or cron"
    return _cadence_fault(schedule.every_ms)


def _cron_fault(expression: Any, timezone: Any) -> str:
    if not isinstance(expression, str):
        return f"{_shown(expression)} is not a text, such as 0 2 * * *"
    if not isinstance(timezone, str):
        return f"{_shown(timezone)} is no time zone, such as Europe/Amsterdam"
    return wall_clock.fault(expression, timezone)


def _cadence_fault(every_ms: Any) -> str:
    if type(every_ms) is not int:
        return f"{_shown(every_ms)} is not a whole number of milliseconds"
    if every_ms < 1000:
        return "a cadence is one second at least"
    return "" if every_ms <= LONGEST_S * 1000 else "a cadence is 366 days at most"


def _catch_up_fault(value: Any) -> str:
    if isinstance(value, CatchUp):
        return ""
    return f"{_shown(value)} is not a CatchUp: " + " or ".join(CatchUp)


def _delays_fault(delays: Any) -> str:
    if not isinstance(delays, tuple):
        return f"{_shown(delays)} is not a list of seconds"
    return next(filter(None, (_least(delay, 0) for delay in delays)), "")


def _above(value: Any, bound: float) -> str:
    fault = _number_fault(value)
    return fault or ("" if value > bound else f"{_shown(value)} is not above {bound:g}")


def _least(value: Any, bound: float) -> str:
    fault = _number_fault(value)
    return fault or ("" if value >= bound else f"{_shown(value)} is less than {bound:g}")


def _count_fault(value: Any) -> str:
    if type(value) is not int:
        return f"{_shown(value)} is not a whole number"
    if value < 1:
        return f"{_shown(value)} is less than 1"
    return "" if value <= MOST else f"it is more than {MOST}"


def _number_fault(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (isinstance(value, float) and not math.isfinite(value)):
        return f"{_shown(value)} is not a number of seconds"
    return "" if value <= LONGEST_S else f"{_shown(value)} is more than 366 days"


def _flag_fault(value: Any) -> str:
    return "" if isinstance(value, bool) else f"{_shown(value)} is not True or False"


def _text_fault(value: Any, longest: int) -> str:
    if not isinstance(value, str):
        return f"{_shown(value)} is not a text"
    return "" if len(value) <= longest else f"it has more than {longest} characters"


def _shown(value: Any) -> str:
    """A value for a message, even if its `repr` fails."""
    try:
        return naming.printable(f"{value!r:.40}")
    except Exception:  # noqa: BLE001  door: a value of a plugin
        return f"a {type(value).__name__}"
