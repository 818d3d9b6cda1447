"""Polling has stopped when no poll ends for longer than the plan allows, and not before."""

from __future__ import annotations

import pytest

from poller.domain.record.overview import Lateness, Load, Overview, Point, State
from poller.domain.scheduling import silence

NOW_MS = 1_800_000_000_000
SLICE_MS = 10_000


def overview(
    *,
    targets: int,
    interval_s: float,
    polls: int,
    quiet_s: int,
    history_s: int = 300,
    **changes: int,
) -> Overview:
    """A fleet with so many polls in each slice until `quiet_s` ago."""
    newest = NOW_MS // SLICE_MS
    recent = []
    for number in range(newest - (quiet_s + history_s) * 1000 // SLICE_MS + 1, newest + 1):
        at_ms = number * SLICE_MS
        is_quiet = at_ms + SLICE_MS > NOW_MS - quiet_s * 1000
        recent.append(Point(at_ms, 10.0, 0 if is_quiet else polls, 0, 0.0))
    unknown = changes.pop("unknown", 0)
    places = {"parked": 0, "held": 0, "breakers_open": 0, "workers": 1} | changes
    workers = places.pop("workers")
    in_flight = places.pop("in_flight", 0)
    load = Load("poll.snmp", targets, 0, 0, targets / interval_s, 0.0, workers, 0.0)
    return Overview(
        as_of_ms=NOW_MS,
        targets=targets,
        states={State.UNKNOWN: unknown, State.OK: targets - unknown},
        due=targets,
        overdue=0,
        in_flight=in_flight,
        polls_per_second=0.0,
        outcomes={},
        lateness=Lateness(),
        recent=recent if history_s else (),
        loads=(load,),
        leader=None,
        standbys=0,
        workers=(),
        errors=(),
        totals={},
        **places,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("fleet", "expected_ms"),
    [
        (overview(targets=160, interval_s=60, polls=27, quiet_s=40), 40_000),
        (overview(targets=160, interval_s=60, polls=27, quiet_s=10), 0),  # between two slices
        (overview(targets=100_000, interval_s=60, polls=16_000, quiet_s=20), 20_000),
        # Twenty devices of five minutes, just imported and polled once: the next polls are far.
        (overview(targets=20, interval_s=300, polls=20, quiet_s=120, history_s=10), 0),
        (overview(targets=20, interval_s=300, polls=1, quiet_s=300), 0),
        # A calm adaptive fleet polls ten times less than its base interval says.
        (overview(targets=100, interval_s=60, polls=2, quiet_s=60), 0),
        # A dark site, dead letters and open breakers are not polled on purpose.
        (overview(targets=160, interval_s=60, polls=27, quiet_s=60, held=160), 0),
        (overview(targets=160, interval_s=60, polls=27, quiet_s=60, parked=80, held=80), 0),
        (overview(targets=160, interval_s=60, polls=27, quiet_s=60, breakers_open=158), 0),
        # No worker serves the queue: another sentence says so.
        (overview(targets=160, interval_s=60, polls=27, quiet_s=60, workers=0), 0),
    ],
)
def test_a_pause_between_polls(fleet: Overview, expected_ms: int) -> None:
    """A pause counts when dozens of polls should have ended in it."""
    assert silence.silent_ms(fleet, began_ms=0) == expected_ms


def test_a_pause_begins_with_leader_and_worker() -> None:
    """Polls of the time before a restart are no measure for a worker that has just started."""
    fleet = overview(targets=160, interval_s=60, polls=27, quiet_s=300)
    assert silence.silent_ms(fleet, NOW_MS - 10_000) == 0
    assert silence.silent_ms(fleet, NOW_MS - 30_000) == 30_000


@pytest.mark.parametrize(("began_s", "unknown", "expected_ms"), [(80, 3, 0), (95, 3, 95_000)])
def test_a_fleet_that_is_never_polled(began_s: int, unknown: int, expected_ms: int) -> None:
    """The first polls end within one interval and half a minute."""
    fleet = overview(targets=3, interval_s=60, polls=0, quiet_s=0, history_s=0, unknown=unknown)
    assert silence.silent_ms(fleet, NOW_MS - began_s * 1000) == expected_ms


def test_a_fleet_with_old_polls_only_may_be_slow() -> None:
    """Known targets without a poll in the last minutes may have an interval of an hour."""
    fleet = overview(targets=3, interval_s=60, polls=0, quiet_s=0, history_s=0)
    assert silence.silent_ms(fleet, NOW_MS - 900_000) == 0


@pytest.mark.parametrize(("in_flight", "expected_ms"), [(160, 1_200_000), (0, 0)])
def test_a_silence_that_outlasts_the_statistics_is_still_one(
    in_flight: int, expected_ms: int
) -> None:
    """Polls that never end stay in flight; a fleet that is merely slow has none there."""
    fleet = overview(
        targets=160, interval_s=60, polls=0, quiet_s=0, history_s=0, in_flight=in_flight
    )
    assert silence.silent_ms(fleet, NOW_MS - 1_200_000) == expected_ms
