"""The status of a target: its encoding, and its change by outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures.circuit_breaker import CLOSED, Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.record import target_status
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.domain.scheduling.interval import Decision


def test_a_status_survives_packing() -> None:
    """Hostile texts survive the round trip."""
    before = Status(State.FAILING, 1, 2, 3, 4, 5, 6, "timeout", 'no "answer"\\ | é')
    assert target_status.unpack(before.pack()) == before
    assert target_status.unpack(Status(State.OK, 1, 2, 3).pack()) == Status(State.OK, 1, 2, 3)


def test_the_decision_of_an_adaptive_target_is_part_of_it() -> None:
    """The decision is stored with and without an error."""
    decision = Decision(0.983051, 2, 1, 5_000, 6_100, 6_213, "steady")
    for error in ((), ("timeout", "no answer")):
        before = Status(State.OK, 1, 2, 3, 4, 5, 6, *error, decision=decision)
        assert target_status.unpack(before.pack()) == before


def test_an_open_breaker_and_a_dead_letter_are_part_of_it() -> None:
    """Every worker reads them before the next poll."""
    for reason in Reason:
        before = Status(
            State.FAILING, 1, 2, 3, 4, 9, 6, "timeout", "no", None, Breaker(5, 77, 99), 1234, reason
        )
        assert target_status.unpack(before.pack()) == before


def test_the_shape_that_was_sent_is_part_of_it() -> None:
    """Whichever worker polls next knows it, with and without other extras."""
    for before in (
        Status(State.OK, 1, 2, 3, 4, 5, 6, shape=-(2**63)),
        Status(State.FAILING, 1, 2, 3, 4, 5, 6, "timeout", "no", shape=7),
        Status(State.OK, 1, 2, 3, 4, 5, 6, decision=Decision(0.5, 0, 0, 1, 1, 1), shape=7),
    ):
        assert target_status.unpack(before.pack()) == before


def test_a_worker_of_an_older_release_reads_a_status_with_a_shape() -> None:
    """The shape is among the extras, of which an older release ignores those it does not know.

    A tenth value would make it a target that was never polled.
    """
    text = Status(State.OK, 1, 2, 3, 4, 5, 6, shape=7).pack()
    assert text == 'o[1,2,3,4,5,6,"","",{"s":7}]'
    newer = text.replace('"s"', '"z"')
    assert target_status.unpack(newer) == Status(State.OK, 1, 2, 3, 4, 5, 6)


def test_a_poll_without_a_shape_forgets_the_last_one() -> None:
    """A worker without a sink that takes ends sends nothing that could end."""
    before = Status(State.OK, 1, 2, 3, shape=7)
    assert target_status.record(before, Outcome(Result.OK), 1000, 1100, 0).shape == 0
    assert target_status.record(before, Outcome(Result.OK), 1000, 1100, 0, 8).shape == 8


def test_a_glance_shows_the_end_of_the_last_poll_and_whether_the_target_fails() -> None:
    """A text that is none is a target that was never polled."""
    for status in (Status(State.OK, 1, 2, 3, 4, 5, 6), Status(State.FAILING, 1, 2, 3, 4, 5, 6)):
        text = status.pack()
        assert target_status.finished_ms(text) == 3
        assert target_status.is_failing(text) == (status.state is State.FAILING)
    for other in ("", "u", "o[1,2", "o[1,2,x,4,5,6]", "o[1,2,-3,4,5,6]"):
        assert target_status.finished_ms(other) == 0
        assert not target_status.is_failing(other)


def test_the_mark_has_state_breaker_and_dead_letter() -> None:
    """The board counts by the letters before the first bracket, one mark per combination."""
    kinds = [
        Status(state, breaker=breaker, parked_ms=1 if reason else 0, reason=reason)
        for state in State
        for breaker in (Breaker(), Breaker(1, 2, 3))
        for reason in (None, *Reason)
    ]
    marks = [kind.mark for kind in kinds]
    assert len(set(marks)) == len(kinds)
    assert all(
        mark.isalpha() and kind.pack().startswith(mark + "[")
        for mark, kind in zip(marks, kinds, strict=True)
    )


def test_a_target_with_a_fixed_interval_does_not_pay_for_adaptive_ones() -> None:
    """A million of these are kept in memory."""
    assert Status(State.OK, 1, 2, 3, 4, 5, 6).pack() == "o[1,2,3,4,5,6]"


def test_a_decision_is_for_one_poll() -> None:
    """A target that is not adaptive any more is rid of it."""
    before = Status(State.OK, decision=Decision(0.5, 0, 0, 1, 1, 1))
    assert target_status.record(before, Outcome(Result.OK), 1000, 1100, 0).decision is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "u",
        "x[1]",
        "o{",
        "o[1,2,3,4,5,6,7,8,9,10,11]",
        "o7",
        'o[1,2,3,4,5,6,"","",7]',
        'o[1,2,3,4,5,6,"","",[1,2]]',
        'o[1,2,3,4,5,6,"","",["a",1,1,1,1,1,""]]',
        'o[1,2,3,4,5,6,"","",null]',
        'o[1,2,3,4,5,6,"","",{"b":[1]}]',
        'o[1,2,3,4,5,6,"","",{"p":"x"}]',
        'o[1,2,3,4,5,6,"","",{"p":1e999}]',
        'o["a",2,3,4,5,6]',
        "o" + "[" * 100_000,
        'o[1,2,3,4,5,6,"","",{"d":7}]',
        'o[1,2,3,4,5,6,"","",{"s":"x"}]',
        'o[1,2,3,4,5,{"s":7}]',
    ],
)
def test_a_foreign_text_is_a_target_never_polled(text: str) -> None:
    """Whatever is in Redis, reading it never fails."""
    assert target_status.unpack(text).run_ms == 0


def test_failures_count_up_and_a_success_clears_them() -> None:
    """The state's start moves only when the state changes; the last error goes with the success."""
    failed = Outcome(Result.FAILED, "timeout", "no answer")
    first = target_status.record(Status(), failed, 1000, 1100, 0)
    second = target_status.record(first, failed, 2000, 2100, 1)
    assert (second.state, second.failures, second.since_ms, second.missed) == (
        State.FAILING,
        2,
        1100,
        1,
    )
    well = target_status.record(second, Outcome(Result.OK), 3000, 3100, 0)
    assert (well.state, well.failures, well.code, well.ok_ms, well.since_ms) == (
        State.OK,
        0,
        "",
        3100,
        3100,
    )


def test_a_partial_poll_is_degraded_but_good() -> None:
    """A partial poll does not count as a failure."""
    after = target_status.record(
        Status(), Outcome(Result.PARTIAL, "timeout", "if_mib"), 1000, 1100, 0
    )
    assert (after.state, after.failures, after.ok_ms, after.code) == (
        State.DEGRADED,
        0,
        1100,
        "timeout",
    )


@given(st.text(), st.integers(0, 3), st.integers(0, 2**45), st.booleans())
def test_the_opening_of_a_breaker_is_read_without_unpacking(
    message: str, trips: int, since_ms: int, is_parked: bool
) -> None:
    """Whatever a device says in its message."""
    parked: dict[str, Any] = {"parked_ms": 7, "reason": Reason.AUTH_FAILED} if is_parked else {}
    for text in (message, f'"b":[1,2,3]{message}'):
        status = Status(
            State.FAILING,
            code="timeout",
            message=text,
            breaker=Breaker(trips, since_ms, 9) if trips else CLOSED,
            **parked,
        )
        assert target_status.open_since_ms(status.pack()) == (since_ms if trips else None)
