"""The conformance suite for jobs: a good job passes, and each broken one fails with advice."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from poller import testing
from poller.domain.record.event_kinds import Event, Kind
from poller.jobs import api
from poller.testing import job_conformance
from poller.testing.job_conformance import CHECKS

SERVICES = SimpleNamespace(rows=3)


@api.job(every_s=60)
def good(context: api.Context) -> api.Result:
    for _ in range(context.services.rows):  # type: ignore[attr-defined]
        context.heartbeat()
    return api.Result(context.services.rows, {"plan": context.plan.isoformat()})  # type: ignore[attr-defined]


TestGood = job_conformance.suite(good, lambda: nullcontext(SERVICES))


@api.job(
    every_s=60,
    scopes=lambda services, now: (("site", name) for name in ("ams", "fra")),
    plans=lambda scope, last, now: [now] if last is None else [],
)
async def scoped(context: api.Context) -> dict[str, str]:
    await asyncio.sleep(0)
    context.heartbeat()
    return {"site": context.scope.id}


TestScoped = job_conformance.suite(scoped)


def made(handler: Any, **values: Any) -> api.JobSpec:
    return api.job(every_s=60, name="bad", **values)(handler)


def endless(context: api.Context) -> None:
    while not context.cancelled:
        context.heartbeat()
        time.sleep(0.01)


async def sleepless(context: api.Context) -> None:
    await asyncio.sleep(3600)


def deaf(context: api.Context) -> None:
    while context.cancelled and not deaf.stop:  # type: ignore[attr-defined]
        time.sleep(0.01)


async def deaf_async(context: api.Context) -> None:
    while context.cancelled and not deaf.stop:  # type: ignore[attr-defined]
        try:
            await asyncio.sleep(0.01)
        except asyncio.CancelledError:
            continue


def once(done: list[int], context: api.Context) -> None:
    context.heartbeat()
    done.append(1)
    if context.attempt > 1:
        raise RuntimeError("the file exists")


def translating(context: api.Context) -> None:
    try:
        context.heartbeat()
    except BaseException:
        raise OSError("no luck") from None


def raising(*_: Any) -> Any:
    raise SystemExit("no")


def ten_plans(scope: Any, last: Any, now: datetime) -> list[datetime]:
    return [datetime(2026, 1, 1)] if last else [now]


COUNTER = itertools.count()
QUICK = {"timeout_s": 0.2, "ends_within_s": 0.5}


def failures(job: Any, services: Any = SERVICES) -> dict[str, str]:
    """The failed tests of the suite and what they say, with `skipped` for skipped ones."""
    suite: Any = job_conformance.suite(job, lambda: nullcontext(services), **QUICK)
    said = {}
    for name in [name for name in vars(suite) if name.startswith("test_")]:
        trial = next(vars(suite)["trial"].__wrapped__(None))
        try:
            getattr(suite(), name)(trial)
        except pytest.fail.Exception as failure:
            said[name.removeprefix("test_")] = str(failure)
        except pytest.skip.Exception as skipped:
            said[name.removeprefix("test_")] = f"skipped: {skipped}"
    return {name: text for name, text in said.items() if "the job has no plans" not in text}


@pytest.mark.parametrize(
    ("job", "broken", "advice"),
    [
        (good, set(), ""),
        (made(handler=lambda context: 5), {"runs", "runs_again"}, "it returned int; return a"),
        (made(lambda context: {1: {2}}), {"runs"}, "no JSON"),
        (made(lambda context: {"rate": float("nan")}), {"runs"}, "no JSON"),
        (made(lambda context: {"text": "x" * 20_000}), {"runs"}, "larger than 16384 bytes"),
        (made(lambda context: api.Result(-1)), {"runs", "runs_again"}, "must be a whole number"),
        (made(raising), {"runs", "runs_again", "cancellation"}, "raised SystemExit: no (/"),
        (made(endless), {"runs", "runs_again"}, "did not end within 0.2 s"),
        (made(sleepless), {"runs", "runs_again"}, "did not end within 0.2 s"),
        (made(deaf), {"cancellation"}, "call context.heartbeat() in its loops"),
        (made(deaf_async), {"cancellation"}, "call context.heartbeat() in its loops"),
        (made(partial(once, [])), {"runs_again"}, "attempt 2: the handler raised RuntimeError"),
        (made(translating), {"cancellation"}, "of a cancelled run raised OSError: no luck"),
        (made(endless, api_version=7), {"contract", "runs", "runs_again"}, "it needs job API 7"),
        (
            made(good.handler, scopes=lambda *_: ["site"]),
            {"scopes", "runs", "runs_again", "cancellation"},
            "scopes: it lists 'site', which is no pair",
        ),
        (
            made(good.handler, scopes=raising),
            {"scopes", "runs", "runs_again", "cancellation"},
            "scopes: it raised SystemExit: no",
        ),
        (
            made(good.handler, scopes=lambda *_: []),
            {"runs", "runs_again", "cancellation"},
            "skipped: the job lists no scope with these services: give `scope`",
        ),
        (
            made(good.handler, scopes=lambda *_: [("site", str(next(COUNTER)))]),
            {"scopes"},
            "two calls for one instant list different scopes",
        ),
        (made(good.handler, plans=lambda *_: 5), {"plans"}, "plans: it returned int and must"),
        (made(good.handler, plans=ten_plans), {"plans"}, "which is no datetime with a time zone"),
    ],
)
def test_each_broken_promise_fails_its_own_check(job: Any, broken: set[str], advice: str) -> None:
    """With words that name the function and the remedy."""
    deaf.stop = False  # type: ignore[attr-defined]
    said = failures(job)
    deaf.stop = True  # type: ignore[attr-defined]
    assert said.keys() == broken
    assert advice in " ".join(said.values())


def test_services_that_are_not_given_are_named() -> None:
    """The advice is the argument to add."""
    said = failures(good, services=None)
    assert "services.rows, which the test does not have: give services=..." in said["runs"]


def test_a_handler_is_run_with_a_context_of_the_test() -> None:
    """Scope, plan and attempt are those of the test; its events are kept."""
    event = Event(0, Kind.DEVICE_WENT_DOWN, "told")

    @api.job(every_s=60)
    def job(context: api.Context) -> api.Result:
        context.tell(event)
        return api.Result(context.attempt, {"scope": list(context.scope), "plan": context.plan})

    plan = datetime(2026, 3, 29, 1, tzinfo=UTC)
    context = testing.context("job", scope=("site", "ams"), plan=plan, attempt=2)
    result = testing.run_job(job, context)
    assert (result.rows_affected, result.details) == (2, {"scope": ["site", "ams"], "plan": plan})
    assert context.events == [event]
    with pytest.raises(ValueError, match="it returned int"):
        testing.run_job(replace(job, handler=lambda context: 5), context)
    context.cancel()
    with pytest.raises(api.Cancelled):
        context.heartbeat()


def test_the_page_names_every_check() -> None:
    """docs/plugins.md lists the tests of the suite."""
    text = (Path(__file__).parents[3] / "docs" / "plugins.md").read_text()
    section = text.partition("\n## A job of your own\n")[2].partition("\n## ")[0]
    assert [check.__name__ for check in CHECKS if f"`{check.__name__}`" not in section] == []
