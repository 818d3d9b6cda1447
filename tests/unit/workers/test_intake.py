"""How many bad looks in a row are a stall, and what is done about it."""

from __future__ import annotations

import pytest

from poller.workers import intake
from poller.workers.intake import Cure, Diagnosis, Fault

HUB, INTAKE = Fault.HUB, Fault.INTAKE


def cures(faults: list[Fault | None]) -> list[Cure | None]:
    diagnosis = Diagnosis()
    return [diagnosis.after(fault) for fault in faults]


@pytest.mark.parametrize("fault", [HUB, INTAKE])
def test_a_single_good_look_clears_all_bad_ones(fault: Fault) -> None:
    """A stall is a stall only when nothing at all goes on."""
    almost: list[Fault | None] = [*[fault] * (intake.LOOKS - 1), None]
    assert set(cures(almost * 3)) == {None}


def test_a_consumer_that_takes_nothing_is_started_again_and_then_given_up() -> None:
    """Only if the new start changes nothing."""
    done = cures([INTAKE] * (2 * intake.LOOKS))
    assert [cure for cure in done if cure] == [Cure.RESTART, Cure.END]
    assert done.index(Cure.RESTART) == intake.LOOKS - 1


def test_a_later_stall_gets_its_own_new_start() -> None:
    """It was well in between."""
    done = cures([*[INTAKE] * intake.LOOKS, None, *[INTAKE] * intake.LOOKS])
    assert [cure for cure in done if cure] == [Cure.RESTART, Cure.RESTART]


def test_a_loop_that_does_not_answer_cannot_be_told_to_start_again() -> None:
    """So the process ends."""
    assert [cure for cure in cures([HUB] * intake.LOOKS) if cure] == [Cure.END]


def test_both_ways_are_over_within_half_a_minute() -> None:
    """What the operator is promised, with the time a worker takes to leave."""
    assert 2 * intake.LOOKS * intake.LOOK_S + 4 <= 30
