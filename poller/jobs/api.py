"""The job contract: what a package offers at the entry point `poller.jobs`.

from poller.jobs import api

@api.job(cron="0 2 * * *", timezone="Europe/Amsterdam")
def nightly(context: api.Context) -> api.Result:
    rows = tidy(context.services.engine)
    return api.Result(rows_affected=rows)
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Protocol

from poller import errors
from poller.domain.inventory.api_version import Served, Stated
from poller.domain.jobs.job_schedule import Cadence, Cron, Schedule
from poller.domain.jobs.job_terms import (
    LONGEST_DESCRIPTION,
    LONGEST_S,
    CatchUp,
    JobTerms,
    fault_text,
    schedule_fault,
)
from poller.domain.record.event_kinds import Event

API_VERSION = 1

#: Contract versions of this release. The promise is that of `poller.collectors.api.SERVED`.
SERVED: Mapping[int, Served] = {1: Served()}


#: Fields of the terms that no author gives.
_NOT_GIVEN = {"name", "schedule", "names_plans", "names_scopes"}


class Scope(NamedTuple):
    """The subject of a run: the whole cluster, a site, a target. Each has runs of its own."""

    kind: str = "global"
    id: str = "global"


GLOBAL = Scope()


class Cancelled(BaseException):
    """Raised in a handler whose run was ended: time-out, lost lease, or a worker that stops."""


class Services(Protocol):
    """The parts of the platform that a job may use."""

    engine: Any  # SQLAlchemy
    redis: Any
    keys: Any
    board: Any
    settings: Any


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run. `details` is stored as JSON, up to 16 KiB."""

    rows_affected: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)


class Context(Protocol):
    """One run, as its handler sees it."""

    job: str
    scope: Scope
    plan: datetime  # UTC
    attempt: int  # from 1
    runner: str
    services: Services

    @property
    def cancelled(self) -> bool:
        """True when the run was ended from outside; its result will be refused."""

    def heartbeat(self) -> None:
        """Raise Cancelled if the run was ended. The runner renews the lease by itself."""

    def tell(self, event: Event) -> None:
        """Record an event. Never raises."""


@dataclass(frozen=True, slots=True)
class LastPlan:
    """The newest scheduled run of a scope, for a `plans` hook."""

    plan: datetime
    status: str  # RUNNING, SUCCESS or FAILED
    attempt: int


#: Gets the context; returns a Result, a mapping for `Result.details`, or None. May be async.
Handler = Callable[[Context], Any]
#: Lists the scopes of a job at an instant.
Scopes = Callable[[Services, datetime], Iterable[tuple[str, str]]]
#: Names the plans of a scope that are due: (scope, its newest run or None, now) -> plan times.
Plans = Callable[[Scope, LastPlan | None, datetime], Iterable[datetime]]


def global_scope(_services: Services, _now: datetime) -> Sequence[Scope]:
    """The one scope of a job that concerns the whole cluster."""
    return (GLOBAL,)


@dataclass(frozen=True)
class JobSpec:
    """A job: its terms and its functions. Calling it calls the handler, for tests."""

    terms: JobTerms
    handler: Handler
    scopes: Scopes = global_scope
    plans: Plans | None = None
    api_version: Stated = API_VERSION

    def __post_init__(self) -> None:
        """Refuse a spec that cannot work. Raises InvalidInput, naming the job and the field."""
        if not isinstance(self.terms, JobTerms):
            raise _refused(_name_of(self.handler), "terms", "they are no JobTerms")
        facts = replace(
            self.terms,
            names_plans=self.plans is not None,
            names_scopes=self.scopes is not global_scope,
        )
        object.__setattr__(self, "terms", facts)
        self.terms.check()
        functions = [("handler", self.handler), ("scopes", self.scopes)]
        if self.plans is not None:
            functions.append(("plans", self.plans))
        for field_name, function in functions:
            fault = _function_fault(function, may_be_async=field_name == "handler")
            if fault:
                raise _refused(self.name, field_name, fault)

    @property
    def name(self) -> str:
        return self.terms.name

    def __call__(self, context: Context) -> Any:
        return self.handler(context)


def job(
    *,
    every_s: float | None = None,
    cron: str | None = None,
    timezone: str = "UTC",
    name: str | None = None,
    scopes: Scopes = global_scope,
    plans: Plans | None = None,
    api_version: Stated = API_VERSION,
    **terms: Any,
) -> Callable[[Handler], JobSpec]:
    """Turn a handler into a job. `terms` are fields of `JobTerms`, such as `max_attempts=5`.

    The name is that of the function unless another is given; the entry point has the same name.
    """

    def decorate(handler: Handler) -> JobSpec:
        job_name = _name_of(handler) if name is None else name
        schedule = _schedule(job_name, every_s, cron, timezone)
        fault = schedule_fault(schedule)
        if fault:
            raise _refused(job_name, "every_s" if cron is None else "cron", fault)
        values = {"description": _description(handler), **terms}
        with suppress(KeyError, TypeError, ValueError):  # the check of the terms names the fault
            values["retry_delays_s"] = tuple(values["retry_delays_s"])
        with suppress(KeyError, ValueError):
            values["catch_up"] = CatchUp(values["catch_up"])
        _refuse_unknown(job_name, values)
        made = JobTerms(name=job_name, schedule=schedule, **values)
        return JobSpec(made, handler, scopes, plans, api_version)

    return decorate


def _schedule(name: str, every_s: Any, cron: Any, timezone: Any) -> Schedule:
    if (every_s is None) == (cron is None):
        raise _refused(name, "schedule", "give every_s or cron, one of them")
    if cron is not None:
        return Cron(cron, timezone)
    is_number = isinstance(every_s, int | float) and not isinstance(every_s, bool)
    if timezone != "UTC":
        raise _refused(name, "timezone", "it goes with cron; every_s is a cadence in UTC")
    if not is_number or not 0 < every_s <= LONGEST_S:
        fault = f"{every_s!r:.40} is not a number of seconds from 1 to {LONGEST_S:.0f}"
        raise _refused(name, "every_s", fault)
    return Cadence(round(every_s * 1000))


def _name_of(handler: Any) -> str:
    """The name of a function; of a partial that of its function, of an object that of its class."""
    while isinstance(handler, partial):
        handler = handler.func
    name = str(getattr(handler, "__name__", type(handler).__name__))
    return "" if name == "<lambda>" else name


def _description(handler: Any) -> str:
    """The first line of the docstring of a function."""
    while isinstance(handler, partial):
        handler = handler.func
    text = str(getattr(handler, "__doc__", None) or "")
    return text.strip().partition("\n")[0].strip()[:LONGEST_DESCRIPTION]


def _function_fault(function: Any, may_be_async: bool) -> str:
    """Why this cannot be a function of a job; "" if it can."""
    if isinstance(function, JobSpec):
        return "it is a job already"
    if isinstance(function, type) or not callable(function):
        return f"{function!r:.40} is not a function"
    while isinstance(function, partial):
        function = function.func
    bodies = (function, getattr(function, "__call__", None))  # noqa: B004  of an object
    if any(map(inspect.isasyncgenfunction, bodies)):
        return "it is an async generator: it must return, not yield"
    if may_be_async and any(map(inspect.isgeneratorfunction, bodies)):
        return "it is a generator: it must return, not yield"
    if not may_be_async and any(map(inspect.iscoroutinefunction, bodies)):
        return "it must not be async"
    return ""


def _refuse_unknown(name: str, values: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an option that a job does not have."""
    known = {each.name for each in fields(JobTerms)} - _NOT_GIVEN
    unknown = sorted(values.keys() - known)
    if not unknown:
        return
    options = known | set(inspect.signature(job).parameters) - {"terms"}
    nearest = difflib.get_close_matches(unknown[0], options, n=1)
    advice = f"did you mean {nearest[0]}?" if nearest else f"options: {', '.join(sorted(options))}"
    raise _refused(name, unknown[0], f"it is no option of a job; {advice}")


def _refused(name: str, field_name: str, fault: str) -> errors.InvalidInput:
    return errors.InvalidInput(fault_text(name, field_name, fault))


__all__ = [
    "API_VERSION",
    "GLOBAL",
    "CatchUp",
    "Cancelled",
    "Context",
    "JobSpec",
    "JobTerms",
    "LastPlan",
    "Result",
    "Scope",
    "Services",
    "job",
]
