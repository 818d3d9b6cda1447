"""How many rows to ask for: learned from trouble, forgotten with patience."""

from __future__ import annotations

from poller.collectors.snmp.tuning import Tuning


def test_the_first_walk_asks_for_all_it_may() -> None:
    assert Tuning(50).want("1.3", 0) == 50


def test_the_next_walk_asks_for_what_is_there_and_one_more() -> None:
    """The one more shows that the subtree has ended, and nothing is sent for nothing."""
    tuning = Tuning(50, sizes={"1.3": 69})
    assert [tuning.want("1.3", 0), tuning.want("1.3", 50)] == [50, 20]
    assert tuning.want("1.3", 75) == 50  # more rows than last time


def test_trouble_halves_and_is_remembered() -> None:
    """The size that failed is not tried again soon."""
    tuning = Tuning(50)
    tuning.too_many(50)
    assert tuning.repetitions == 25
    tuning.end_poll()
    for _ in range(30):
        tuning.end_poll()
    assert tuning.repetitions == 49


def test_after_many_clean_polls_the_limit_is_dared_again() -> None:
    tuning = Tuning(50)
    tuning.too_many(50)
    for _ in range(200):
        tuning.end_poll()
    assert tuning.repetitions == 50


def test_it_never_asks_for_nothing() -> None:
    tuning = Tuning(50)
    for _ in range(10):
        tuning.too_many(tuning.repetitions)
    assert tuning.repetitions == 1
