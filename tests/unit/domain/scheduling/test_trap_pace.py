"""Traps cause a poll at once, then once per gap; the total rate is bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.scheduling.trap_pace import TrapPace


def pace(gap_ms: int = 10_000, per_s: float = 20.0, burst: int = 100) -> TrapPace:
    return TrapPace(gap_ms, per_s, burst)


def test_the_first_trap_causes_a_poll_at_once() -> None:
    """One trap causes one poll."""
    it = pace()
    assert it.request(1, 0)
    assert it.due(0) == [1]
    assert it.due(60_000) == []


def test_a_burst_costs_one_more_poll_when_it_is_over() -> None:
    """The second poll, one gap later, covers the traps after the first."""
    it = pace()
    it.request(1, 0)
    it.due(0)
    assert [it.request(1, at) for at in range(1, 5000, 100)] == [True] + [False] * 49
    assert it.due(9_999) == []
    assert it.due(10_000) == [1]
    assert it.waiting == 0


def test_devices_beyond_the_rate_wait() -> None:
    """The longest waiting devices are polled first, within the rate."""
    it = pace(per_s=2.0, burst=3)
    for device in range(10):
        it.request(device, device)
    assert it.due(10) == [0, 1, 2]
    assert it.due(10) == []
    assert it.due(1_010) == [3, 4]
    assert it.waiting == 5


def test_a_poll_that_could_not_be_requested_is_due_again() -> None:
    """An unavailable store costs neither the trap nor a gap."""
    it = pace()
    it.request(1, 0)
    assert it.due(0) == [1]
    it.retry(1, 0)
    assert it.due(500) == [1]


def test_a_clock_that_stands_still_gives_nothing_for_free() -> None:
    """A clock that goes back earns no tokens either."""
    it = pace(per_s=1000.0, burst=1)
    it.request(1, 1000)
    it.request(2, 1000)
    assert it.due(1000) == [1]
    assert it.due(1000) == []
    assert it.due(500) == []
    assert it.due(1500) == [2]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3000)), max_size=200))
def test_every_trap_is_followed_by_a_poll_and_polls_keep_their_distance(
    steps: list[tuple[int, int]],
) -> None:
    """Every trap has a later poll, and two polls of a device are at least a gap apart."""
    it, now, polls = pace(gap_ms=1000), 0, dict[int, list[int]]()
    traps: dict[int, int] = {}

    def poll_due() -> None:
        for device in it.due(now):
            polls.setdefault(device, []).append(now)

    for device, later in steps:
        now += later
        poll_due()
        it.request(device, now)
        traps[device] = now
    for _ in range(50):
        now += 100
        poll_due()
    for device, last in traps.items():
        assert polls[device][-1] >= last
        assert all(b - a >= 1000 for a, b in zip(polls[device], polls[device][1:], strict=False))
