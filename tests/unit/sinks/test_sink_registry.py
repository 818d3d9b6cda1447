"""Sinks are found by entry point; a wrong one is refused by name, before any data is lost."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pydantic
import pytest
import structlog

from poller import errors
from poller.sinks import registry
from poller.sinks.api import Stores

STORES = Stores(engine=None, redis=None, settings=None)
CLOSED: list[str] = []


class Good:
    name = "good"
    api_version = 1

    def __init__(self, stores: Stores) -> None:
        self.stores = stores

    def write(self, samples: Any) -> None: ...

    def close(self) -> None:
        CLOSED.append(self.name)


class FromTheFuture(Good):
    name = "bad"
    api_version = 99


class NoSink:
    name = "bad"
    api_version = 1

    def __init__(self, stores: Stores) -> None: ...


class Explosive(Good):
    name = "bad"

    def __init__(self, stores: Stores) -> None:
        raise OSError("no route")


class Endpoint(Good):
    """A sink with options, as the HTTP sinks have."""

    name = "endpoint"
    write_polls = 50
    takes_ends = True

    class Options(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")

        url: str = pydantic.Field(description="Where the samples go.")
        timeout_s: float = pydantic.Field(10.0, gt=0, description="The longest wait.")

    def __init__(self, stores: Stores, options: Options) -> None:
        super().__init__(stores)
        self.options = options


class Lax(Good):
    name = "bad"
    Options = pydantic.BaseModel


class Greedy(Good):
    name = "bad"
    write_polls = 0


class Stubborn(Good):
    name = "stubborn"

    def close(self) -> None:
        raise SystemExit("I stay")


def points(**classes: str) -> list[EntryPoint]:
    return [
        EntryPoint(name, f"{__name__}:{value}", registry.GROUP) for name, value in classes.items()
    ]


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of the tests lead to this module, under whatever name it was loaded."""
    classes = (Good, FromTheFuture, NoSink, Explosive, Stubborn, Endpoint, Lax, Greedy)
    here = {each.__name__: each for each in classes}

    really = EntryPoint.load

    def load(point: EntryPoint) -> Any:
        if point.module != __name__:
            return really(point)
        if point.attr not in here:
            raise ImportError(f"no module named {point.attr}")
        return here[point.attr]

    monkeypatch.setattr(EntryPoint, "load", load)
    CLOSED.clear()


def test_our_own_sinks_are_installed_like_anybody_elses() -> None:
    """Built-ins come in through the same door."""
    assert {"sql", "stream"} <= set(registry.survey().plugins)


def test_sinks_are_made_once_each_and_in_the_given_order() -> None:
    """A name given twice is one sink: readings must not be stored twice."""
    made = registry.load(["good", "good"], STORES, points(good="Good"))
    assert [(each.name, each.kind, type(each.sink)) for each in made] == [("good", "good", Good)]
    assert made[0].sink.stores.name == "good"  # type: ignore[attr-defined]
    assert (made[0].write_polls, made[0].takes_ends) == (1024, False)


def test_an_unknown_sink_names_the_nearest_and_the_installed() -> None:
    """And sinks that were made already are closed."""
    with pytest.raises(errors.InvalidSetting, match='unknown sink "godo"') as caught:
        registry.load(["good", "godo"], STORES, points(good="Good", other="NoSink"))
    assert caught.value.hint == "did you mean good? installed: good, other"
    assert CLOSED == ["good"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [("FromTheFuture", "needs sink API 99"), ("NoSink", "does not implement"),
     ("Explosive", "OSError: no route"), ("Gone", "ImportError"),
     ("Lax", "takes unknown options"), ("Greedy", "its write_polls")],
)  # fmt: skip
def test_a_sink_that_cannot_be_used_says_why(target: str, reason: str) -> None:
    """A worker without its sink must not start."""
    with pytest.raises(errors.InvalidSetting, match='sink "bad"') as caught:
        registry.load(["good", "bad"], STORES, points(good="Good", bad=target))
    assert reason in caught.value.cause
    assert CLOSED == ["good"]


def test_a_sink_that_cannot_be_closed_keeps_no_other_from_it() -> None:
    """Nor does it hide what is wrong with another."""
    with (
        structlog.testing.capture_logs() as lines,
        pytest.raises(errors.InvalidSetting, match='unknown sink "godo"'),
    ):
        registry.load(
            ["stubborn", "good", "godo"], STORES, points(stubborn="Stubborn", good="Good")
        )
    assert CLOSED == ["good"]
    assert [line["event"] for line in lines] == ["sink_not_closed"]


ENDPOINTS = {
    "prom": {"kind": "endpoint", "url": "http://one"},
    "mimir": {"kind": "endpoint", "url": "http://two", "timeout_s": 1},
}


def endpoints(tables: dict[str, Any], *names: str) -> Any:
    found = points(good="Good", endpoint="Endpoint")
    return registry.load(names or tables, STORES, found, tables)


def test_several_sinks_of_one_kind_have_their_own_names_and_options() -> None:
    """A second endpoint is a second table."""
    made = endpoints(ENDPOINTS, "prom", "good", "mimir")
    assert [(each.name, each.kind) for each in made] == [
        ("prom", "endpoint"), ("good", "good"), ("mimir", "endpoint"),
    ]  # fmt: skip
    assert [made[0].sink.options.url, made[2].sink.options.timeout_s] == ["http://one", 1.0]
    assert [each.sink.stores.name for each in made] == ["prom", "good", "mimir"]
    assert (made[0].write_polls, made[0].takes_ends) == (50, True)


def test_the_kind_of_a_table_is_its_name_if_it_states_none() -> None:
    """One endpoint needs no second name."""
    made = endpoints({"endpoint": {"url": "http://one"}})
    assert (made[0].name, made[0].kind) == ("endpoint", "endpoint")


def test_a_sink_says_how_many_samples_it_leaves_out() -> None:
    """Each sink has its own count, and the newest reason is shown."""
    prom, mimir = endpoints(ENDPOINTS)
    prom.sink.stores.dropped(2, "out of order: up{}\n")
    prom.sink.stores.dropped(1, "too old: up{}")
    assert (prom.left_out.samples, prom.left_out.reason) == (3, "too old: up{}")
    assert (mimir.left_out.samples, mimir.left_out.reason) == (0, "")


@pytest.mark.parametrize(
    ("table", "message", "hint"),
    [
        ({}, "url: it must be set", "url: Where the samples go."),
        ({"url": "x", "timeout_s": 0}, "timeout_s: Input should be greater", "The longest wait"),
        ({"url": "x", "time_out_s": 1}, "time_out_s: there is no such", "did you mean timeout_s?"),
        (
            {"ulr": "x"},
            "url: it must be set; ulr: there is no such option (did you mean url?)",
            "url",
        ),
        ({"url": 7}, "url: it is a text in quotes", "url: Where"),
        ({"url": "x", "y": 1}, "y: there is no such option", "options: url, timeout_s"),
        ({"kind": "good", "url": "x"}, "url: a sink of this kind takes no", "remove url"),
        ({"kind": "endpiont"}, 'kind: unknown sink "endpiont"', "did you mean endpoint?"),
    ],
)
def test_a_wrong_option_names_the_table_and_the_fix(
    table: dict[str, Any], message: str, hint: str
) -> None:
    """The value is not repeated: it may be a secret at the wrong place."""
    with pytest.raises(errors.InvalidSetting) as caught:
        endpoints({"prom": {"kind": "endpoint", **table}})
    assert str(caught.value).startswith(f"[sink.prom] {message}")
    assert hint in caught.value.hint


def test_a_table_without_a_kind_says_that_it_needs_one() -> None:
    """A name of one's own is no installed sink."""
    with pytest.raises(errors.InvalidSetting) as caught:
        endpoints({"prom": {"url": "x"}})
    assert str(caught.value).startswith("[sink.prom] kind: it must be set")
    assert "add kind to the table, one of " in caught.value.hint
