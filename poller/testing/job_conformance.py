"""The conformance suite for jobs: a job can be installed, run, run again and cancelled.

    TestNightly = job_conformance.suite(nightly, services=services)

`services` is a context manager that yields what the handler uses of `context.services`, such as an
object with the attribute `engine`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, NoReturn, TypeVar

import pytest

from poller import errors, plugins
from poller.domain.jobs.job_terms import JobTerms
from poller.jobs import plugin_values, registry
from poller.jobs.api import Cancelled, JobSpec, LastPlan, Result, Scope
from poller.testing import job_context
from poller.testing.job_context import PLAN, FakeContext

#: Size of a result's details as JSON. A worker cuts what is larger.
LARGEST_DETAILS = 16 * 1024

T = TypeVar("T")


def suite(
    job: JobSpec,
    services: Callable[[], AbstractContextManager[Any]] = nullcontext,
    *,
    scope: tuple[str, str] | None = None,
    plan: datetime = PLAN,
    timeout_s: float = 30.0,
    ends_within_s: float = 5.0,
) -> type:
    """Return a test class for pytest. Assign it to a name that begins with `Test`.

    job: the job, as the entry point has it.
    services: a context manager that yields the services of the platform for the job.
    scope: the scope to run; by default the first that the job lists.
    plan: the plan to run.
    timeout_s: how long one run in the test may take.
    ends_within_s: how soon the handler has to end after it was cancelled.
    """

    @pytest.fixture
    def trial(_self: Any) -> Iterator[_Trial]:
        with services() as platform:
            yield _Trial(job, platform, scope, plan, timeout_s, ends_within_s)

    tests: dict[str, Any] = {f"test_{check.__name__}": _test(check) for check in CHECKS}
    return type("TestJob", (), {"trial": trial, **tests})


class _Trial:
    """The job under test, and what its runs need."""

    def __init__(
        self,
        job: JobSpec,
        services: Any,
        scope: tuple[str, str] | None,
        plan: datetime,
        timeout_s: float,
        ends_within_s: float,
    ) -> None:
        self.job = job
        self.services = services
        self.plan = plan
        self.timeout_s = timeout_s
        self.ends_within_s = ends_within_s
        self._scope = scope

    def scopes(self) -> list[Scope]:
        """The scopes that the job lists."""
        found = _attempt("scopes", partial(self.job.scopes, self.services, self.plan))
        return _attempt("scopes", partial(plugin_values.scopes, found))

    def context(self, attempt: int = 1) -> FakeContext:
        scope = self._scope or next(iter(self.scopes()), None)
        if scope is None:
            pytest.skip("the job lists no scope with these services: give `scope`")
        return job_context.context(
            self.job.name,
            scope=scope,
            plan=self.plan,
            attempt=attempt,
            services=self.services,
        )

    def run(self, attempt: int) -> Result:
        """Run the handler once, in a thread as a worker does."""
        call = _Call(self.job, self.context(attempt))
        if not call.ended_within(self.timeout_s):
            _fail(f"the handler did not end within {self.timeout_s:g} s")
        if call.error is not None:
            _fail(f"attempt {attempt}: the handler raised {_where(call.error)}")
        try:
            return plugin_values.result(call.value)
        except plugin_values.Refused as error:
            _fail(f"handler: {error}; return a poller.jobs.api.Result, a mapping or None")


class _Call:
    """A call of the handler in a thread of its own. A handler may raise anything and may hang."""

    def __init__(self, job: JobSpec, run: FakeContext) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._job = job
        self._context = run
        self._thread = threading.Thread(target=self._run, name=f"job-{job.name}", daemon=True)
        self._thread.start()

    def ended_within(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            value = self._job.handler(self._context)
            if inspect.isawaitable(value):
                value = asyncio.run(self._awaited(value))
            self.value = value
        except BaseException as error:  # noqa: BLE001  the door to a plugin's handler
            self.error = error

    async def _awaited(self, value: Any) -> Any:
        """Wait for the handler, and cancel it as a worker does once the run is cancelled."""
        task = asyncio.ensure_future(value)
        while not task.done():
            await asyncio.wait([task], timeout=0.05)
            if self._context.cancelled:
                task.cancel()
        return task.result()


def contract(trial: _Trial) -> None:
    """The registry accepts the job: its name, its API version, its terms."""
    try:
        registry.admit(trial.job, getattr(trial.job, "name", ""))
    except errors.ConfigError as error:
        refusal = f"the registry would not load it: {error}. {error.hint}"
        _fail(refusal.rstrip(". "))


def terms(trial: _Trial) -> None:
    """A leader reads the terms as the worker announces them."""
    stored = json.dumps(trial.job.terms.to_json())
    if JobTerms.from_json(json.loads(stored)) != trial.job.terms:
        _fail("the terms are not the same after they were stored")


def scopes(trial: _Trial) -> None:
    """`scopes` lists pairs (kind, id) of texts, the same ones for the same instant."""
    listed = trial.scopes()
    if set(trial.scopes()) != set(listed):
        _fail("scopes: two calls for one instant list different scopes")


def plans(trial: _Trial) -> None:
    """The `plans` hook, if there is one, names datetimes, for a new scope and for one that ran."""
    hook = trial.job.plans
    if hook is None:
        pytest.skip("the job has no plans hook")
    scope = trial.context().scope
    history: Sequence[LastPlan | None] = (None, LastPlan(trial.plan, "SUCCESS", 1))
    for last in history:
        found = _attempt("plans", partial(hook, scope, last, trial.plan))
        _attempt("plans", partial(plugin_values.plans_ms, found))


def runs(trial: _Trial) -> None:
    """The handler runs a plan and returns a result that the ledger can store."""
    result = trial.run(attempt=1)
    try:
        text = json.dumps(dict(result.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        _fail(f"the details of its result are no JSON: {error}")
    if len(text.encode()) > LARGEST_DETAILS:
        _fail(f"the details of its result are larger than {LARGEST_DETAILS} bytes of JSON")


def runs_again(trial: _Trial) -> None:
    """A second run of the same plan does not fail: a runner may die after its work was done."""
    trial.run(attempt=1)
    trial.run(attempt=2)


def cancellation(trial: _Trial) -> None:
    """The handler of a cancelled run ends soon: `heartbeat` raises Cancelled, in every loop."""
    run = trial.context()
    run.cancel()
    call = _Call(trial.job, run)
    if not call.ended_within(trial.ends_within_s):
        _fail(
            f"the handler went on for {trial.ends_within_s:g} s after its run was cancelled: "
            "call context.heartbeat() in its loops, and do not catch Cancelled"
        )
    is_cancellation = isinstance(call.error, Cancelled | asyncio.CancelledError)
    if call.error is not None and not is_cancellation:
        _fail(f"the handler of a cancelled run raised {_where(call.error)}")


#: The checks in the order in which a new job usually fails them.
CHECKS: tuple[Callable[[_Trial], None], ...] = (
    contract,
    terms,
    scopes,
    plans,
    runs,
    runs_again,
    cancellation,
)


def _test(check: Callable[[_Trial], None]) -> Callable[[Any, _Trial], None]:
    def test(self: Any, trial: _Trial) -> None:
        check(trial)

    test.__doc__ = check.__doc__
    return test


def _attempt(function: str, call: Callable[[], T]) -> T:
    """The result of a call, or a failed test that names the function and its fault."""
    try:
        return call()
    except plugin_values.Refused as error:
        _fail(f"{function}: {error}")
    except (Exception, SystemExit) as error:  # noqa: BLE001  the door to a plugin's function
        _fail(f"{function}: it raised {_where(error)}")


def _where(error: BaseException) -> str:
    """Class, message, file and line of an exception."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return plugins.error_text(error) + place


def _fail(text: str) -> NoReturn:
    pytest.fail(text, pytrace=False)


__all__ = ["CHECKS", "suite"]
