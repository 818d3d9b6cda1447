"""`@api.job`: a function becomes a job; a fault is refused where it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from poller import errors
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.jobs import api


def tidy(context: Any) -> Any:
    """Removes old files.

    And more.
    """
    return {"seen": context.job}


async def tidy_async(context: Any) -> None: ...


def yielding(context: Any) -> Iterator[int]:
    yield 1


async def yielding_async(context: Any) -> AsyncIterator[int]:
    yield 1


class Tidier:
    """Tidies with a state."""

    def __call__(self, context: Any) -> int:
        return 1


class Yielder:
    async def __call__(self, context: Any) -> AsyncIterator[int]:
        yield 1


async def later(*values: Any) -> Any: ...


def test_a_decorated_function_is_a_job() -> None:
    """Its name and the first line of its docstring are those of the function."""
    spec = api.job(cron="0 2 * * *", timezone="Europe/Amsterdam", max_attempts=5)(tidy)
    assert (spec.name, spec.terms.description) == ("tidy", "Removes old files.")
    assert spec.terms.schedule == Cron("0 2 * * *", "Europe/Amsterdam")
    assert spec.terms.max_attempts == 5
    assert not spec.terms.names_plans
    assert not spec.terms.names_scopes
    assert spec(SimpleNamespace(job="tidy")) == {"seen": "tidy"}
    assert list(spec.scopes(None, None)) == [("global", "global")]  # type: ignore[arg-type]


def test_a_job_with_a_cadence_and_its_own_name() -> None:
    """Lists and words are taken as they are usually written."""
    spec = api.job(
        every_s=0.5 * 60, name="tidy.files", retry_delays_s=[1, 2], catch_up="every_plan"
    )
    terms = spec(tidy).terms
    assert (terms.name, terms.schedule) == ("tidy.files", Cadence(30_000))
    assert (terms.retry_delays_s, terms.catch_up) == ((1, 2), api.CatchUp.EVERY_PLAN)


@pytest.mark.parametrize(
    ("handler", "name"),
    [(tidy_async, "tidy_async"), (partial(tidy), "tidy"), (Tidier(), "Tidier"),
     (partial(partial(tidy_async)), "tidy_async"), (Tidier().__call__, "__call__")],
)  # fmt: skip
def test_functions_of_any_kind_are_handlers(handler: Any, name: str) -> None:
    """Async ones, partials, methods and objects that can be called."""
    if name == "__call__":
        assert api.job(every_s=60, name="method")(handler).name == "method"
    else:
        assert api.job(every_s=60)(handler).name == name


def test_scopes_and_plans_of_its_own_are_terms() -> None:
    """The leader knows that such a job may have nothing to run."""
    spec = api.job(every_s=60, scopes=lambda *_: [], plans=lambda *_: [])(tidy)
    assert spec.terms.names_scopes
    assert spec.terms.names_plans
    direct = api.JobSpec(api.JobTerms("tidy", Cadence(60_000), names_plans=True), tidy)
    assert not direct.terms.names_plans


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "schedule: give every_s or cron, one of them"),
        ({"every_s": 60, "cron": "* * * * *"}, "schedule: give every_s or cron, one of them"),
        ({"every_s": "60"}, "every_s: '60' is not a number of seconds"),
        ({"every_s": True}, "every_s: True is not a number of seconds"),
        ({"every_s": float("nan")}, "every_s: nan is not a number of seconds"),
        ({"every_s": float("inf")}, "every_s: inf is not a number of seconds"),
        ({"every_s": -60}, "every_s: -60 is not a number of seconds"),
        ({"every_s": 10**400}, "every_s: 1000000000"),
        ({"every_s": 0.4}, "every_s: a cadence is one second at least"),
        ({"cron": "99 * * * *"}, "cron: .*Bad minute; the fields are"),
        ({"cron": 5}, "cron: 5 is not a text"),
        ({"cron": "* * * * *", "timezone": "Nowhere"}, 'cron: "Nowhere" is no time zone'),
        ({"every_s": 60, "max_attempt": 5}, "max_attempt: .*did you mean max_attempts"),
        (
            {"every_s": 60, "colour": "red"},
            "colour: it is no option of a job; options: api",
        ),
        ({"every_s": 60, "names_scopes": True}, "names_scopes: it is no option"),
        ({"every_s": 60, "timezone": "Europe/Paris"}, "timezone: it goes with cron"),
        ({"every_s": 60, "schedule": 5}, "schedule: it is no option"),
        ({"every_s": 60, "max_attempts": 0}, "max_attempts: 0 is less than 1"),
        ({"every_s": 60, "retry_delays_s": 60}, "retry_delays_s: 60 is not a list"),
        ({"every_s": 60, "catch_up": "all"}, "catch_up: 'all' is not"),
        ({"every_s": 60, "scopes": None}, "scopes: None is not a function"),
        ({"every_s": 60, "scopes": later}, "scopes: it must not be async"),
        ({"every_s": 60, "scopes": yielding_async}, "scopes: it is an async generator"),
        ({"every_s": 60, "plans": 5}, "plans: 5 is not a function"),
        ({"every_s": 60, "plans": later}, "plans: it must not be async"),
    ],
)
def test_a_fault_names_the_job_and_the_field(arguments: dict[str, Any], text: str) -> None:
    """At the import of the package, before any plan."""
    with pytest.raises(errors.InvalidInput, match=f'^job "tidy": {text}'):
        api.job(**arguments)(tidy)


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (lambda context: None, 'job "": name: it is empty: give a name'),
        (yielding, 'job "yielding": handler: it is a generator: it must return'),
        (yielding_async, 'job "yielding_async": handler: it is an async generator'),
        (partial(yielding), 'job "yielding": handler: it is a generator'),
        (Yielder(), 'job "Yielder": handler: it is an async generator'),
        (Tidier, "job \"Tidier\": handler: <class .* is not a function"),
        (None, 'job "NoneType": handler: None is not a function'),
        (api.job(every_s=60)(tidy), 'job "JobSpec": handler: it is a job already'),
    ],
)  # fmt: skip
def test_what_cannot_be_a_handler_is_refused(handler: Any, text: str) -> None:
    """A generator would be called and never run."""
    with pytest.raises(errors.InvalidInput, match=f"^{text}"):
        api.job(every_s=60)(handler)


def test_a_generator_may_list_scopes() -> None:
    """It is read to its end."""
    assert api.job(every_s=60, scopes=lambda *_: iter([]))(tidy)
    assert api.job(every_s=60, scopes=yielding)(tidy)  # type: ignore[arg-type]


def test_a_spec_needs_terms() -> None:
    """Terms of another type are refused by the name of the function."""
    with pytest.raises(errors.InvalidInput, match='job "tidy": terms: they are no JobTerms'):
        api.JobSpec({"name": "tidy"}, tidy)  # type: ignore[arg-type]
