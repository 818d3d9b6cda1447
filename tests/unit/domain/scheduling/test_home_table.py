"""Homes of targets: an even division, and few moves when workers come and go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.scheduling import home_table
from poller.domain.scheduling.home_table import BUCKETS, IDS_PER_BLOCK, MOST_EXCESS, HomeTable

IDS = range(1, BUCKETS * IDS_PER_BLOCK + 1, IDS_PER_BLOCK)  # one of each bucket
SLOTS = 16


def table(*workers: str) -> HomeTable:
    return home_table.home_table(tuple((worker, SLOTS) for worker in sorted(workers)))


def names(count: int) -> list[str]:
    return [f"poller{number}@host{number % 3}" for number in range(count)]


def moved(before: HomeTable, after: HomeTable) -> Counter[tuple[str, str]]:
    """The buckets that moved, by their homes before and after."""
    pairs = [(before.home(each), after.home(each)) for each in IDS]
    return Counter(pair for pair in pairs if pair[0] != pair[1])


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_no_worker_has_much_more_than_its_share(count: int) -> None:
    """In a small fleet, too: the first buckets are divided like all."""
    made = table(*names(count))
    for buckets, excess in ((BUCKETS, MOST_EXCESS), (64, 4), (16, 1)):
        shares = Counter(made.home(each) for each in IDS[:buckets])
        assert max(shares.values()) <= buckets / count + excess + 1


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_a_worker_that_comes_takes_its_share_and_little_else_moves(count: int) -> None:
    *old, new = names(count + 1)
    moves = moved(table(*old), table(*old, new))
    to_new = sum(number for (_, home), number in moves.items() if home == new)
    assert to_new == pytest.approx(BUCKETS / (count + 1), rel=0.1)
    assert moves.total() - to_new < 0.04 * BUCKETS


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_only_the_targets_of_a_worker_that_goes_move(count: int) -> None:
    """The bound moves few of the others."""
    gone, *rest = names(count)
    moves = moved(table(gone, *rest), table(*rest))
    others = sum(number for (home, _), number in moves.items() if home != gone)
    assert others < 0.04 * BUCKETS


def test_a_worker_with_more_slots_has_more_targets() -> None:
    made = home_table.home_table((("large", 32), ("small", 8)))
    shares = Counter(made.home(each) for each in IDS)
    assert shares["large"] / shares["small"] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize("per_device", [1, 2, 3, 4, 6])
def test_the_targets_of_a_device_have_one_home(per_device: int) -> None:
    """Targets that are made together have consecutive ids."""
    made = table(*names(5))
    for device in range(500):
        first = 1 + device * per_device
        assert len({made.home(first + number) for number in range(per_device)}) == 1


@given(
    st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 2**62), unique=True, max_size=50),
)
def test_a_division_keeps_every_target_once(workers: list[str], ids: list[int]) -> None:
    """Each target goes to its home, in the order of the claim."""
    made = table(*workers)
    parts = made.divide(ids)
    assert sorted(each for part in parts.values() for each in part) == sorted(ids)
    for worker, part in parts.items():
        assert part == [each for each in ids if made.home(each) == worker]


def test_the_homes_are_the_same_in_every_release() -> None:
    """A changed hash would move every target of the fleet at an update."""
    made = table("a", "b", "c")
    assert "".join(made.home(each) for each in IDS[:24]) == "bcbcaabcbabaabcbcabaccaa"
