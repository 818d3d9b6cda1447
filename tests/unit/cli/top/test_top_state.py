"""The keys of `poller top` change its state; the screen fits the terminal."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from rich.cells import cell_len

from poller.cli.top import top_screen, top_state
from poller.cli.top.top_state import TopData, TopState, Wish
from poller.domain.fleet.device_summary import DeviceSummary
from poller.domain.record.overview import Lateness, Overview, State
from poller.domain.record.target_status import Status
from poller.domain.why.target_health import TargetHealth
from poller.presentation import health
from poller.service.fleet.device_listing import ListedDevice
from poller.service.fleet.fleet_picture import FleetPicture

NOW_MS = 1_794_874_392_000
OVERVIEW = Overview(
    as_of_ms=NOW_MS,
    targets=3,
    states={State.FAILING: 3},
    due=0,
    overdue=0,
    in_flight=0,
    parked=0,
    polls_per_second=1.0,
    outcomes={},
    lateness=Lateness(),
    recent=(),
    loads=(),
    leader=None,
    standbys=0,
    workers=(),
    errors=(),
    totals={},
)


def failing(name: str, code: str, message: str) -> ListedDevice:
    """A device whose only target never answered."""
    status = Status(state=State.FAILING, code=code, message=message)
    worst = cast(TargetHealth, SimpleNamespace(status=status))
    return ListedDevice(Named(name), DeviceSummary("failing", worst))  # type: ignore[arg-type]


class Named:
    """The part of a device that the screen shows."""

    def __init__(self, name: str) -> None:
        self.name = name


def data(*names: str) -> TopData:
    listed = [ListedDevice(Named(name), DeviceSummary("failing")) for name in names]  # type: ignore[arg-type]
    return TopData(OVERVIEW, health.judge(OVERVIEW), FleetPicture(), listed)


def keys(state: TopState, typed: list[str]) -> tuple[TopState, Wish]:
    wish = Wish.NOTHING
    for key in typed:
        state, wish = top_state.pressed(state, key)
    return state, wish


def test_the_mark_stays_on_its_device_when_rows_move() -> None:
    """New data bring another order, and the marked device is still marked."""
    state, _ = keys(TopState().with_data(data("a", "b", "c")), ["j"])
    assert state.selected == "b"
    assert state.with_data(data("c", "a", "b")).selected == "b"
    assert state.with_data(data("c", "a")).selected == "c"


def test_a_typed_filter_is_read_when_it_is_complete() -> None:
    """Letters that are keys elsewhere are letters here, and Escape keeps the old filter."""
    state, wish = keys(TopState().with_data(data("a")), ["/", *"qpx", "\x7f", "\r"])
    assert (state.where, state.typed, wish) == ("qp", None, Wish.READ)
    state, wish = keys(state, ["/", "z", "\x1b"])
    assert (state.where, state.typed, wish) == ("qp", None, Wish.NOTHING)


@pytest.mark.parametrize(
    ("key", "wish"), [("q", Wish.QUIT), ("p", Wish.POLL), ("\r", Wish.OPEN), ("f", Wish.READ)]
)
def test_a_key_asks_for_one_thing(key: str, wish: Wish) -> None:
    """The loop does it."""
    assert top_state.pressed(TopState().with_data(data("a")), key)[1] is wish


def test_nothing_is_polled_or_opened_without_a_device() -> None:
    """An empty list has no mark."""
    state = TopState().with_data(data())
    assert keys(state, ["p", "\r", "j"])[1] is Wish.NOTHING


@pytest.mark.parametrize(("width", "height"), [(40, 8), (80, 24), (200, 60)])
def test_the_screen_fits_the_terminal(width: int, height: int) -> None:
    """The line of help is always there; long names are cut."""
    state = TopState(detail=("a long sentence " * 5,)).with_data(
        data(*(f"ap-{n}" + "x" * 60 for n in range(99)))
    )
    lines = top_screen.lines(state, width, height)
    assert len(lines) <= height
    assert lines[-1].plain.startswith("q quit")
    assert max(cell_len(line.plain) for line in lines) <= width


@pytest.mark.parametrize(("width", "height"), [(40, 12), (80, 24)])
def test_the_marked_device_is_always_on_the_screen(width: int, height: int) -> None:
    """The list moves with the mark, and says which part of it is shown."""
    state = TopState().with_data(data(*(f"ap-{n:02}" for n in range(50))))
    for _ in range(50):
        shown = [line.plain for line in top_screen.lines(state, width, height)]
        assert any(line.startswith(f"> ■ {state.selected} ") for line in shown)
        state, _ = keys(state, ["j"])
    assert any(" to 50 of 50" in line for line in shown)


def test_columns_are_as_wide_as_their_texts() -> None:
    """What is left of the line is for the reason; what does not fit is below the rows."""
    short = replace(data("网络-🚀"), devices=[failing("网络-🚀", "timeout", "no answer")])
    shown = [line.plain for line in top_screen.lines(TopState().with_data(short), 80, 24)]
    assert "> ■ 网络-🚀 timeout     never  no answer" in shown
    assert shown.count("no answer") == 0
    reason = "no answer from 192.0.2.1 port 161 (wrong credential, or an access list)"
    long = replace(data("a"), devices=[failing("a", "timeout", reason)])
    shown = [line.plain for line in top_screen.lines(TopState().with_data(long), 60, 24)]
    assert " ".join(shown[-3:-1]) == f"a: timeout: {reason}"


def test_only_who_may_poll_is_told_the_key() -> None:
    """Without --write the key does nothing."""
    for may in (True, False):
        state = TopState(may_poll=may).with_data(data("a"))
        assert ("p poll" in top_screen.lines(state, 100, 24)[-1].plain) is may


def test_a_wrong_filter_is_a_text_on_the_screen() -> None:
    """It replaces the rows."""
    state = TopState().with_data(replace(data("a"), problem="there is no state fine"))
    shown = [line.plain for line in top_screen.lines(state, 80, 24)]
    assert "there is no state fine" in shown
