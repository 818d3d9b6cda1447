"""The targets of a device on its page: how each stands, when it is polled, why it is not well, what to type next."""

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
from poller.presentation.device_state import Standing
from poller.state.board.breakers import BoardTarget
from poller.state.board.record_formats import Opening
from poller.web.pages import device_targets
from poller.web.pages.device_targets import Row, TargetsView

NOW, MINUTE = fleet.NOW_MS, 60_000
GOOD = Status(State.OK, NOW - 3 * MINUTE, NOW - 20_000, NOW - 20_000, NOW - 20_000)
BAD = Status(
    State.FAILING, NOW - 3 * MINUTE, NOW - 20_000, NOW - 20_000, 0, 3, 0, "timeout", "no answer"
)


def seen(
    status: Status = GOOD, place: str = "due", next_ms: int = NOW + 40_000, **more: object
) -> BoardTarget:
    return replace(BoardTarget(1, MINUTE, status, "", None, place, next_ms, "poll.snmp"), **more)  # type: ignore[arg-type]


def shown(
    each: BoardTarget | None, overview: Overview | None = None, target: Target = web_rates.TARGET
) -> TargetsView:
    return device_targets.present(
        "sw1", [target], Standing(now_ms=NOW, seen={1: each} if each else {}), overview
    )


def row(each: BoardTarget | None, overview: Overview | None = None) -> Row:
    [only] = shown(each, overview).rows
    return only


def test_a_target_that_is_well() -> None:
    """In quiet ink, with the last good poll and the next one; there is nothing to type."""
    assert row(seen()) == Row("snmp", "● ok", "", "", "snmp", "1m", "20 s ago", "in 40 s", "", "")
    assert shown(seen()).commands == []


def test_a_target_that_never_answered() -> None:
    """Since when it fails, that it never did well, and the error in full."""
    found = row(seen(BAD))
    assert (found.state, found.tone, found.since) == ("■ failing", "failing", "for 3 m 0 s")
    assert (found.last_good, found.error, found.note) == ("never", "timeout: no answer", "")
    assert shown(seen(BAD)).commands == ["poller runs sw1"]


@pytest.mark.parametrize(
    ("each", "state", "note"),
    [
        (None, "○ not scheduled yet", ""),
        (seen(Status()), "○ not polled yet", ""),
        (seen(GOOD._replace(state=State.DEGRADED)), "▲ degraded", ""),
        (seen(BAD._replace(breaker=Breaker(1, NOW, NOW))), "■ failing", "its breaker is open"),
        (
            seen(BAD._replace(reason=Reason.AUTH_FAILED), "parked"),
            "■ parked",
            "dead letter: auth_failed",
        ),
        (seen(BAD, "held", 0), "■ site dark", "waits until a few others of its site answer"),
        (
            seen(opening=Opening(NOW + 2 * MINUTE, NOW, "ann")),
            "‖ paused",
            "opened by hand by ann, for another 2 m 0 s",
        ),
    ],
)
def test_every_way_to_stand_has_a_mark_and_a_word(
    each: BoardTarget | None, state: str, note: str
) -> None:
    """None is told by colour alone."""
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
def test_a_late_target_says_what_it_waits_for(queue: str, overview: Overview, note: str) -> None:
    """Late is what should have been polled two intervals ago, as everywhere."""
    waiting = seen(next_ms=NOW - 2 * MINUTE - 1, queue=queue)
    found = row(waiting, overview)
    assert (found.state, found.next_poll, found.note) == ("▲ late", "2 m 0 s overdue", note)
    assert device_targets.any_late(Standing(now_ms=NOW, seen={1: waiting}))
    assert row(replace(waiting, next_ms=NOW - 2 * MINUTE), overview).state == "● ok"


@pytest.mark.parametrize(
    ("each", "words"),
    [
        (seen(place="in_flight", next_ms=0), "under way"),
        (seen(place="urgent", next_ms=0), "now"),
        (seen(next_ms=NOW - 500), "now"),
        (seen(next_ms=NOW - 5_000), "5 s overdue"),
        (seen(BAD, "held", 0), "with its site"),
    ],
)
def test_when_the_next_poll_is(each: BoardTarget, words: str) -> None:
    assert row(each).next_poll == words


def test_what_a_person_switched_off_is_not_late() -> None:
    """A target, or the whole device; what the board said before is no news."""
    off = replace(web_rates.TARGET, enabled=False)
    [found] = shown(seen(BAD), target=off).rows
    assert (found.state, found.error, found.next_poll) == ("‖ disabled", "", "–")
    whole = device_targets.present(
        "sw1", [web_rates.TARGET], Standing(enabled=False, now_ms=NOW), None
    )
    assert (whole.rows[0].state, whole.commands) == (
        "‖ disabled",
        ["poller device edit sw1 --enable"],
    )


def test_a_board_that_cannot_be_asked_makes_nothing_ok() -> None:
    """Nor failing: nobody knows."""
    found = device_targets.present(
        "sw1", [web_rates.TARGET], Standing(trouble="Redis does not answer"), None
    )
    assert (found.rows[0].state, found.commands) == ("○ unknown", ["poller status"])


def test_an_adaptive_target_tells_its_bounds() -> None:
    adaptive = replace(
        web_rates.TARGET, policy=Policy.ADAPTIVE, interval_ms=10_000, min_ms=5_000, max_ms=300_000
    )
    assert shown(seen(), target=adaptive).rows[0].interval == "10s (5s to 5m)"


def test_the_worst_come_first_and_the_rest_is_counted() -> None:
    """A device with more targets than anybody reads."""
    many = [replace(web_rates.TARGET, id=number, name=f"t{number:02}") for number in range(60)]
    board = {target.id: replace(seen(), id=target.id) for target in many}
    board[59] = replace(seen(BAD), id=59)
    board[58] = replace(seen(BAD._replace(reason=Reason.NOT_POLLABLE), "parked"), id=58)
    found = device_targets.present("sw1", many, Standing(now_ms=NOW, seen=board), None)
    assert [each.name for each in found.rows[:3]] == ["t58", "t59", "t00"]
    assert [each.words for each in found.counted] == ["■ 1 parked", "■ 1 failing", "● 58 ok"]
    assert (len(found.rows), found.more) == (50, 10)
    assert found.commands == ["poller runs sw1", "poller deadletter list --device sw1"]
