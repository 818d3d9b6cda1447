"""Sinks are found by entry point; a wrong one is refused by name, before any data is lost."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

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
    classes = (Good, FromTheFuture, NoSink, Explosive, Stubborn)
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
    assert [type(sink) for sink in made] == [Good]
    assert made[0].stores is STORES  # type: ignore[attr-defined]


def test_an_unknown_sink_names_the_nearest_and_the_installed() -> None:
    """And sinks that were made already are closed."""
    with pytest.raises(errors.InvalidSetting, match='unknown sink "godo"') as caught:
        registry.load(["good", "godo"], STORES, points(good="Good", other="NoSink"))
    assert caught.value.hint == "did you mean good? installed: good, other"
    assert CLOSED == ["good"]


@pytest.mark.parametrize(
    ("target", "reason"),
    [("FromTheFuture", "needs sink API 99"), ("NoSink", "does not implement"),
     ("Explosive", "OSError: no route"), ("Gone", "ImportError")],
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
