"""The targets table of a device page: states, next polls, reasons and commands."""

from __future__ import annotations

from dataclasses import replace

import pytest
import web_overviews as fleet
import web_rates

from poller.db.inventory.targets import Target
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.record.overview import Overview, State
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Policy
from poller.presentation.device_state import DeviceState
from poller.state.board.breakers import BoardTarget
from poller.state.board.record_formats import Opening
from poller.web.pages.device import device_targets
from poller.web.pages.device.device_targets import TargetRow, TargetsView

NOW = fleet.NOW_MS
MINUTE = 60_000
GOOD = Status(
    state=State.OK,
    since_ms=NOW - 3 * MINUTE,
    run_ms=NOW - 20_000,
    finished_ms=NOW - 20_000,
    ok_ms=NOW - 20_000,
)
BAD = GOOD._replace(state=State.FAILING, ok_ms=0, failures=3, code="timeout", message="no answer")


def on_board(
    status: Status = GOOD, place: str = "due", next_ms: int = NOW + 40_000, **more: object
) -> BoardTarget:
    target = BoardTarget(
        id=1,
        interval_ms=MINUTE,
        status=status,
        text="",
        place=place,
        next_ms=next_ms,
        queue="poll.snmp",
    )
    return replace(target, **more)  # type: ignore[arg-type]


def shown(
    each: BoardTarget | None, overview: Overview | None = None, target: Target = web_rates.TARGET
) -> TargetsView:
    device = DeviceState(now_ms=NOW, on_board={1: each} if each else {})
    return device_targets.build_view("sw1", [target], device, overview)


def row(each: BoardTarget | None, overview: Overview | None = None) -> TargetRow:
    [only] = shown(each, overview).rows
    return only


def test_a_good_target() -> None:
    """A good target has no colour; it has its last good and its next poll, and needs no command."""
    assert row(on_board()) == TargetRow(
        name="snmp",
        state="● ok",
        tone="",
        since="",
        collector="snmp",
        interval="1m",
        last_good="20 s ago",
        next_poll="in 40 s",
        error="",
        note="",
    )
    assert shown(on_board()).commands == []


def test_a_target_that_never_answered() -> None:
    """The row has the duration of the failure and the whole error; the last good poll is never."""
    found = row(on_board(BAD))
    assert (found.state, found.tone, found.since) == ("■ failing", "failing", "for 3 m 0 s")
    assert (found.last_good, found.error, found.note) == ("never", "timeout: no answer", "")
    assert shown(on_board(BAD)).commands == ["poller runs sw1"]


@pytest.mark.parametrize(
    ("each", "state", "note"),
    [
        (None, "○ not scheduled yet", ""),
        (on_board(Status()), "○ not polled yet", ""),
        (on_board(GOOD._replace(state=State.DEGRADED)), "▲ degraded", ""),
        (on_board(BAD._replace(breaker=Breaker(1, NOW, NOW))), "■ failing", "its breaker is open"),
        (
            on_board(BAD._replace(reason=Reason.AUTH_FAILED), "parked"),
            "■ parked",
            "dead letter: auth_failed",
        ),
        (on_board(BAD, "held", 0), "■ site dark", "waits until the canaries of its site answer"),
        (
            on_board(opening=Opening(NOW + 2 * MINUTE, NOW, "ann")),
            "‖ paused",
            "opened by hand by ann, for another 2 m 0 s",
        ),
    ],
)
def test_every_state_has_a_glyph_and_a_word(
    each: BoardTarget | None, state: str, note: str
) -> None:
    """No state is shown by colour alone."""
    found = row(each)
    assert (found.state, found.note) == (state, note)


@pytest.mark.parametrize(
    ("queue", "overview", "note"),
    [
        ("poll.snmp", fleet.HEALTHY, "the workers do not keep up"),
        ("poll.snmp", fleet.NO_LEADER, "no leader: nothing is being scheduled"),
        ("poll.snmp;zone=lab", fleet.UNROUTABLE, "needs tag zone=lab; 5 workers live, none has it"),
    ],
)
def test_a_late_target_has_the_reason(queue: str, overview: Overview, note: str) -> None:
    """A target is late when it is overdue by more than two of its intervals."""
    waiting = on_board(next_ms=NOW - 2 * MINUTE - 1, queue=queue)
    found = row(waiting, overview)
    assert (found.state, found.next_poll, found.note) == ("▲ late", "2 m 0 s overdue", note)
    assert device_targets.has_late_target(DeviceState(now_ms=NOW, on_board={1: waiting}))
    assert row(replace(waiting, next_ms=NOW - 2 * MINUTE), overview).state == "● ok"


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (on_board(place="in_flight", next_ms=0), "in flight"),
        (on_board(place="urgent", next_ms=0), "now"),
        (on_board(next_ms=NOW - 500), "now"),
        (on_board(next_ms=NOW - 5_000), "5 s overdue"),
        (on_board(BAD, "held", 0), "with its site"),
    ],
)
def test_the_next_poll(each: BoardTarget, words: str) -> None:
    """The next poll depends on the place of the target, and on its time."""
    assert row(each).next_poll == words


def test_a_disabled_target_is_not_late() -> None:
    """A target, or all targets of a disabled device. Their old errors are not shown."""
    disabled = replace(web_rates.TARGET, enabled=False)
    [found] = shown(on_board(BAD), target=disabled).rows
    assert (found.state, found.error, found.next_poll) == ("‖ disabled", "", "–")

    device = DeviceState(enabled=False, now_ms=NOW)
    view = device_targets.build_view("sw1", [web_rates.TARGET], device, None)
    assert (view.rows[0].state, view.commands) == (
        "‖ disabled",
        ["poller device edit sw1 --enable"],
    )


def test_an_unreadable_board_makes_every_state_unknown() -> None:
    """The page shows a command that explains more."""
    device = DeviceState(board_error="Redis does not answer")
    found = device_targets.build_view("sw1", [web_rates.TARGET], device, None)
    assert (found.rows[0].state, found.commands) == ("○ unknown", ["poller status"])


def test_an_adaptive_interval_has_its_bounds() -> None:
    """The interval column has minimum and maximum."""
    adaptive = replace(
        web_rates.TARGET, policy=Policy.ADAPTIVE, interval_ms=10_000, min_ms=5_000, max_ms=300_000
    )
    assert shown(on_board(), target=adaptive).rows[0].interval == "10s (5s to 5m)"


def test_the_worst_targets_come_first_and_the_others_are_on_pages() -> None:
    """25 rows are shown; the counts cover all targets."""
    targets = [replace(web_rates.TARGET, id=number, name=f"t{number:02}") for number in range(60)]
    board = {target.id: replace(on_board(), id=target.id) for target in targets}
    board[59] = replace(on_board(BAD), id=59)
    board[58] = replace(on_board(BAD._replace(reason=Reason.NOT_POLLABLE), "parked"), id=58)
    state = DeviceState(now_ms=NOW, on_board=board)
    found = device_targets.build_view("sw1", targets, state, None)
    assert [each.name for each in found.rows[:3]] == ["t58", "t59", "t00"]
    assert [each.text for each in found.counts] == ["■ 1 parked", "■ 1 failing", "● 58 ok"]
    assert (len(found.rows), found.shown, found.following) == (25, "1 to 25 of 60", 25)
    last = device_targets.build_view("sw1", targets, state, None, 50)
    assert (len(last.rows), last.shown) == (10, "51 to 60 of 60")
    assert (last.previous, last.following) == (25, None)
    beyond = device_targets.build_view("sw1", targets, state, None, 900)
    assert beyond.rows == found.rows
    assert found.commands == ["poller runs sw1", "poller deadletter list --device sw1"]
