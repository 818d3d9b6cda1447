"""Who is told when: once at the beginning, again while nobody works on it, once at the end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.alerts.alert import Acknowledgement, AlertState, Subject
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import quiet_hours, told
from poller.domain.alerts.telling.notice import NoticeKind
from poller.domain.alerts.telling.told import Telling, TellingKind
from tests.unit.domain.alerts.telling.told_alerts import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    alert,
    candidate,
    ended,
    planned,
    told_once,
)

ACKNOWLEDGED = Acknowledgement("ann", "on it", NOW - MINUTE, NOW + HOUR)


def test_an_alert_is_told_once_its_group_has_waited() -> None:
    """A notice waits for the route's group wait, and the plan says until when."""
    given = alert(fired_ms=NOW - 2 * SECOND)
    waiting = planned(candidate(given))
    assert waiting.notices == []
    assert waiting.due_ms == NOW + 3 * SECOND

    [notice] = planned(candidate(given), now_ms=NOW + 3 * SECOND).notices
    assert notice.kind is NoticeKind.FIRING
    assert notice.receivers == ("mail",)
    assert notice.group == {"site": "fra", "rule": "device-unreachable", "severity": "critical"}
    assert [telling for item in notice.items for telling in item.tellings] == [(1, "firing", 0)]


def test_alerts_of_a_group_are_one_notice() -> None:
    """Alerts of one site, rule and severity are told together, those of another site apart."""
    elsewhere = alert(3, subject=Subject(device_id=3, device="sw-3", site="ber"))
    late = alert(2, fired_ms=NOW)
    made = planned(candidate(alert(1)), candidate(late), candidate(elsewhere))
    together = [[item.alert.id for item in notice.items] for notice in made.notices]
    assert sorted(together) == [[1, 2], [3]]


def test_an_alert_is_not_told_twice() -> None:
    """An alert that was told waits for its repeat."""
    made = planned(candidate(alert(), told=told_once()))
    assert made.notices == []
    assert made.due_ms == NOW - MINUTE + 4 * HOUR


def test_an_alert_is_told_again_while_nobody_works_on_it() -> None:
    """A repeat is due after the route's time, and takes the rest of its group along."""
    old, young = told_once(NOW - HOUR), told_once(NOW - MINUTE, firings=3)
    candidates = candidate(alert(1), told=old), candidate(alert(2), told=young)
    [notice] = planned(*candidates, repeat_ms=HOUR).notices
    assert [item.tellings[0] for item in notice.items] == [(1, "firing", 1), (2, "firing", 3)]
    assert notice.replies_to == ("k1",)
    assert planned(*candidates, repeat_ms=0).notices == []


def test_an_acknowledged_alert_is_not_told_again() -> None:
    """Neither repeat nor escalation while a person works on it; both once that ends."""
    given = candidate(alert(acknowledged=ACKNOWLEDGED), told=told_once(NOW - 2 * HOUR))
    options = {"repeat_ms": HOUR, "escalate_after_ms": HOUR, "escalate_to": ("boss",)}
    quiet = planned(given, **options)
    assert quiet.notices == []
    assert quiet.due_ms == ACKNOWLEDGED.until_ms
    later = planned(given, now_ms=ACKNOWLEDGED.until_ms, **options)
    assert [notice.kind for notice in later.notices] == [NoticeKind.ESCALATION]


def test_a_flapping_alert_is_told_once() -> None:
    """While an alert is damped it is not told again."""
    given = alert(damped_until_ms=NOW + MINUTE, flaps=4)
    assert len(planned(candidate(given)).notices) == 1
    assert planned(candidate(given, told=told_once(NOW - HOUR)), repeat_ms=HOUR).notices == []


def test_what_is_suppressed_is_not_told() -> None:
    """An alert behind a dead parent, and one that does not fire yet, are told to nobody."""
    hidden = alert(1, suppressed_by="alert:7")
    pending = alert(2, state=AlertState.PENDING, fired_ms=0)
    assert planned(candidate(hidden), candidate(pending)).notices == []


def test_an_end_is_told_to_whoever_was_told() -> None:
    """The end is told once, also if it came while the alert was suppressed."""
    given = ended(suppressed_by="maintenance:4")
    [notice] = planned(candidate(given, told=told_once())).notices
    assert notice.kind is NoticeKind.RESOLVED
    assert notice.replies_to == ("k1",)
    assert planned(candidate(given, told=told_once(is_resolved=True))).notices == []


def test_an_end_is_told_to_a_route_that_no_longer_takes_the_alert() -> None:
    """What was told counts, not what the route would take now."""
    moved = candidate(ended(), told=told_once())
    [notice] = planned(type(moved)(moved.alert, moved.seen_ms, (), moved.told)).notices
    assert notice.kind is NoticeKind.RESOLVED


def test_the_end_for_a_route_that_is_gone_is_closed() -> None:
    """A route that the settings no longer have does not keep the alert in every reading."""
    made = planned(candidate(ended(), route="old", told=told_once()))
    assert made.notices == []
    assert made.untold_ends == [(1, "old")]


def test_a_route_need_not_tell_ends() -> None:
    """With `tell_resolved` off the end is recorded and told to nobody."""
    made = planned(candidate(ended(), told=told_once()), tell_resolved=False)
    assert (made.notices, made.untold_ends) == ([], [(1, "ops")])


def test_a_short_alert_is_told_only_if_the_route_says_so() -> None:
    """An alert that ended before it was told is one notice with both tellings, or none."""
    given = candidate(ended())
    assert planned(given).notices == []
    [notice] = planned(given, tell_short=True).notices
    assert notice.kind is NoticeKind.RESOLVED
    assert notice.items[0].tellings == [(1, "firing", 0), (1, "resolved", 0)]


def test_nobody_acknowledges_and_it_is_escalated() -> None:
    """After the route's time others are told, once, and of the end as well."""
    options = {"escalate_after_ms": 15 * MINUTE, "escalate_to": ("boss",)}
    early = planned(candidate(alert(), told=told_once()), **options)
    assert early.notices == []
    assert early.due_ms == NOW - MINUTE + 15 * MINUTE

    [notice] = planned(candidate(alert(), told=told_once(NOW - HOUR)), **options).notices
    assert (notice.kind, notice.receivers) == (NoticeKind.ESCALATION, ("boss",))

    escalated = told_once(NOW - HOUR, is_escalated=True)
    assert planned(candidate(alert(), told=escalated), **options).notices == []
    [end] = planned(candidate(ended(), told=escalated), **options).notices
    assert end.receivers == ("mail", "boss")


def test_quiet_hours_hold_what_is_not_critical() -> None:
    """A warning waits for the end of quiet hours, a critical alert passes."""
    # NOW is 08:00 in UTC, on a Friday.
    hours = quiet_hours.parse(["22:00-09:00"], "UTC")
    warning = candidate(alert(1, severity=Severity.WARNING))
    made = planned(warning, candidate(alert(2)), quiet_hours=hours)
    assert [notice.items[0].alert.id for notice in made.notices] == [2]
    assert made.due_ms == NOW + HOUR
    assert len(planned(warning, quiet_hours=hours, now_ms=NOW + HOUR).notices) == 1
    none_passes = planned(candidate(alert(2)), quiet_hours=hours, quiet_passes=())
    assert none_passes.notices == []


def test_beyond_the_limit_the_rest_is_one_summary() -> None:
    """The most urgent groups are told alone, all others together."""
    sites = [
        alert(number, subject=Subject(device_id=number, device="d", site=f"s{number}"))
        for number in range(1, 6)
    ]
    mild = [alert(6, severity=Severity.INFO), *sites]
    made = planned(*map(candidate, mild), per_minute=3, made_ms={"ops": [NOW - SECOND]})
    assert [notice.kind for notice in made.notices] == [NoticeKind.FIRING, NoticeKind.SUMMARY]
    assert [len(notice.items) for notice in made.notices] == [1, 5]
    assert 6 in {item.alert.id for item in made.notices[1].items}


def test_without_room_notices_wait() -> None:
    """A full minute holds the next notice until the oldest of it is a minute old."""
    made_ms = {"ops": [NOW - 50 * SECOND, NOW - 20 * SECOND]}
    made = planned(candidate(alert()), per_minute=2, made_ms=made_ms)
    assert made.notices == []
    assert made.due_ms == NOW + 10 * SECOND


def test_notices_of_a_clock_that_was_ahead_take_no_room() -> None:
    """Otherwise nobody would be told until the wrong instants have come."""
    made_ms = {"ops": [NOW + HOUR, NOW + 2 * HOUR]}
    assert len(planned(candidate(alert()), per_minute=2, made_ms=made_ms).notices) == 1
    nearly_now = {"ops": [NOW + SECOND, NOW - SECOND]}
    assert planned(candidate(alert()), per_minute=2, made_ms=nearly_now).notices == []


def test_a_telling_that_is_still_to_come_was_made_when_its_alert_fired() -> None:
    """So a clock that was set back puts off neither repeats nor escalations."""
    wrong = Telling(1, "ops", TellingKind.FIRING, 0, NOW + 100 * HOUR, "key")
    right = Telling(2, "ops", TellingKind.FIRING, 0, NOW + SECOND, "key")
    fired = {1: NOW - 5 * HOUR, 2: NOW - HOUR}
    assert [each.told_ms for each in told.by_clock([wrong, right], fired, NOW)] == [
        NOW - 5 * HOUR,
        NOW + SECOND,
    ]
    of_alert = told.summed(told.by_clock([wrong], fired, NOW))[1]
    [repeated] = planned(candidate(alert(), told=of_alert["ops"])).notices
    assert repeated.items[0].round == 1


def test_the_key_of_a_notice_is_that_of_what_it_tells() -> None:
    """Whoever makes the notice, the same tellings have the same key, and others another."""
    one, same, other = (
        planned(*map(candidate, alerts)).notices[0].key
        for alerts in ([alert(1), alert(2)], [alert(2), alert(1)], [alert(1)])
    )
    assert one == same != other
    elsewhere = [alert(1, fired_ms=NOW - 11 * SECOND), alert(2)]  # the ids of another database
    assert planned(*map(candidate, elsewhere)).notices[0].key not in (one, other)


@given(
    per_minute=st.integers(1, 5),
    fired=st.lists(st.integers(0, 300), min_size=1, max_size=40),
)
def test_every_alert_is_told_once_within_the_limit(per_minute: int, fired: list[int]) -> None:
    """Whatever fires when, each alert is told exactly once, and no minute has too many notices."""
    alerts = [
        alert(
            number,
            fired_ms=NOW + second * SECOND,
            subject=Subject(device_id=number, device="d", site=f"s{number % 7}"),
        )
        for number, second in enumerate(fired, 1)
    ]
    told: dict[int, int] = {}
    made: list[int] = []
    now_ms = NOW
    while now_ms < NOW + 15 * MINUTE:
        untold = [each for each in alerts if each.fired_ms <= now_ms and each.id not in told]
        plan = planned(
            *map(candidate, untold), now_ms=now_ms, made_ms={"ops": made}, per_minute=per_minute
        )
        for notice in plan.notices:
            made.append(now_ms)
            for item in notice.items:
                assert item.kind is TellingKind.FIRING
                assert told.setdefault(item.alert.id, now_ms) == now_ms
        now_ms += 5 * SECOND
    assert len(told) == len(alerts)
    for at_ms in made:
        assert sum(at_ms - MINUTE < other <= at_ms for other in made) <= per_minute
