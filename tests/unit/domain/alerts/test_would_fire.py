"""When a rule would have fired: times in which a condition held, with `for` and `keep` applied."""

from __future__ import annotations

import pytest

from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rules import would_fire
from poller.domain.alerts.rules.would_fire import Held, Pair
from poller.domain.record.event_kinds import Event, Kind

SW1 = Subject(1, 7, "sw1", "snmp", "ams", "ifName=eth0")
SW2 = Subject(2, 8, "sw2", "snmp", "ams")
FAILING = Pair(Kind.TARGET_FAILED, Kind.TARGET_RECOVERED)
NOW_MS = 1_000


def fired(
    *spans: tuple[int, int], for_ms: int = 0, keep_ms: int = 0, now_ms: int = NOW_MS
) -> list[tuple[int, int]]:
    held = [Held(SW1, since_ms, until_ms) for since_ms, until_ms in spans]
    found = would_fire.firings(held, for_ms, keep_ms, now_ms)
    return [(each.fired_ms, each.ended_ms) for each in found]


@pytest.mark.parametrize(
    ("spans", "for_ms", "keep_ms", "expected"),
    [
        ([(10, 20)], 0, 0, [(10, 20)]),
        ([(10, 20)], 10, 0, [(20, 20)]),
        ([(10, 20)], 11, 0, []),
        ([(10, 0)], 100, 0, [(110, 0)]),
        ([(950, 0)], 100, 0, []),
        ([(10, 20), (30, 40)], 0, 0, [(10, 20), (30, 40)]),
        ([(10, 20), (30, 40)], 0, 15, [(10, 55)]),
        ([(10, 20), (30, 40)], 0, 5, [(10, 25), (30, 45)]),
        ([(10, 20), (30, 31)], 5, 15, [(15, 46)]),
        ([(10, 11), (12, 13), (14, 15)], 5, 15, []),
        ([(10, 20), (30, 0)], 0, 15, [(10, 0)]),
        ([(980, 990)], 0, 50, [(980, 0)]),
    ],
)
def test_for_and_keep_decide(
    spans: list[tuple[int, int]], for_ms: int, keep_ms: int, expected: list[tuple[int, int]]
) -> None:
    """Short times make no alert, short gaps end none, and what lasts is open."""
    assert fired(*spans, for_ms=for_ms, keep_ms=keep_ms) == expected


def test_subjects_have_alerts_of_their_own() -> None:
    """The alerts of several subjects come in the order in which they fire."""
    held = [Held(SW2, 30, 40), Held(SW1, 10, 20), Held(SW1, 35, 0)]
    found = would_fire.firings(held, 0, 0, NOW_MS)
    assert [(each.held.subject.device, each.fired_ms) for each in found] == [
        ("sw1", 10),
        ("sw2", 30),
        ("sw1", 35),
    ]


def event(at_ms: int, kind: Kind, target_id: int = 7, code: str = "timeout") -> Event:
    return Event(at_ms, kind, "", target_id=target_id, data={"code": code})


def test_events_begin_and_end_a_time() -> None:
    """A repeated bad event begins nothing new; a good one without a bad one began before."""
    events = [
        event(5, Kind.TARGET_RECOVERED),
        event(10, Kind.TARGET_FAILED),
        event(12, Kind.TARGET_FAILED, code="auth_failed"),
        event(20, Kind.TARGET_RECOVERED),
        event(21, Kind.TARGET_RECOVERED),
        event(30, Kind.TARGET_FAILED, code="auth_failed"),
        event(31, Kind.TARGET_FAILED, target_id=9),
    ]
    held = would_fire.held_by_events(events, FAILING, {"target:7": SW1}, 1)
    assert [(each.since_ms, each.until_ms) for each in held] == [(1, 5), (10, 20), (30, 0)]
    refused = would_fire.with_codes(held, ["auth_failed"])
    assert [each.since_ms for each in refused] == [30]
    assert would_fire.with_codes(held, ()) == held


def test_a_site_is_known_by_its_name() -> None:
    """The events of sites have no device."""
    pair = Pair(Kind.SITE_OPENED, Kind.SITE_RECOVERED)
    events = [
        Event(10, Kind.SITE_OPENED, "", data={"site": "ams"}),
        Event(11, Kind.SITE_OPENED, "", data={"site": "ber"}),
        Event(20, Kind.SITE_RECOVERED, "", data={"site": "ams"}),
    ]
    ams = Subject(site="ams")
    [held] = would_fire.held_by_events(events, pair, {"site:ams": ams}, 0)
    assert (held.subject, held.since_ms, held.until_ms) == (ams, 10, 20)


@pytest.mark.parametrize(
    ("good_ms", "expected"),
    [
        ([], []),
        ([100, 200, 300], [(450, 0)]),
        ([100, 250, 411, 500], [(400, 411), (650, 0)]),
        ([900, 950], []),
    ],
)
def test_a_gap_between_good_polls_is_no_data(
    good_ms: list[int], expected: list[tuple[int, int]]
) -> None:
    """The time before the first good poll is not known, and counts for nothing."""
    found = would_fire.without_polls(SW2, good_ms, 150, 0, NOW_MS)
    assert [(each.since_ms, each.until_ms) for each in found] == expected
