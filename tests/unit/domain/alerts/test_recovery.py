"""When an alert without a sign is known to be over, and which signs levels make."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.flow import level_signs, recovery
from poller.domain.alerts.flow.known_rules import KnownRules
from poller.domain.alerts.flow.level_signs import Trouble
from poller.domain.alerts.mark import MOST_MARKS, Mark
from poller.domain.alerts.rule import (
    Condition,
    NoData,
    PlatformProblem,
    PlatformTrouble,
    Rule,
    Severity,
    TargetFailing,
)
from poller.domain.failures.site_outage import Limits, Outage, Window, may_be_dark
from poller.domain.inventory import target_filter
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from tests.unit.domain.alerts.alert_worlds import DARK, FAILING, LOAD, MISSING, UNREACHABLE, device

SEEN = 1_000_000
ALERT = Alert(
    rule="x",
    severity=Severity.WARNING,
    subject=Subject(device_id=1),
    state=AlertState.FIRING,
    since_ms=SEEN,
    seen_ms=SEEN,
)
GOOD = Status(State.OK, finished_ms=SEEN + 5, ok_ms=SEEN + 5)
BAD = Status(State.FAILING, code="timeout", finished_ms=SEEN + 5, ok_ms=SEEN - 5)
REFUSED = Status(State.FAILING, code="auth_failed", finished_ms=SEEN + 5, ok_ms=SEEN - 5)
OLD = Status(State.OK, finished_ms=SEEN, ok_ms=SEEN)


def test_any_answer_after_the_failure_brings_a_device_back() -> None:
    """A refused login is an answer too; a time-out and an answer from before are none."""
    assert recovery.device_back_ms(ALERT, [BAD, GOOD]) == SEEN + 5
    assert recovery.device_back_ms(ALERT, [REFUSED]) == SEEN + 5
    assert recovery.device_back_ms(ALERT, [BAD, OLD]) == 0
    assert recovery.device_back_ms(ALERT, []) == 0


def test_the_last_polls_of_a_device_say_whether_it_is_silent() -> None:
    """One silent target makes a device doubtful, and its last good poll counts as an answer."""
    seen = recovery.reached([BAD, OLD])
    assert (seen.polled_ms, seen.answered_ms, seen.is_silent) == (SEEN + 5, SEEN, True)
    assert not recovery.reached([GOOD]).is_silent


@pytest.mark.parametrize(
    ("condition", "status", "is_over"),
    [
        (TargetFailing(), GOOD, True),
        (TargetFailing(), OLD, False),
        (TargetFailing(), BAD, False),
        (TargetFailing(), None, False),
        (TargetFailing(("timeout",)), REFUSED, True),
        (TargetFailing(("auth_failed",)), BAD, False),
        (NoData(), GOOD, True),
        (NoData(), BAD._replace(ok_ms=SEEN + 1), True),
        (NoData(), BAD, False),
    ],
)
def test_a_target_is_well_by_a_poll_that_shows_it(
    condition: Condition, status: Status | None, is_over: bool
) -> None:
    """A silent device says nothing about a failure with another code."""
    assert bool(recovery.target_well_ms(ALERT, condition, status)) is is_over


def test_a_mark_is_gone_by_a_good_poll_after_the_marks_were_made_whole() -> None:
    """A poll from before the marks came back proves nothing, nor does a full list."""
    assert recovery.unmarked_ms(ALERT, GOOD, [], 0) == SEEN + 5
    assert recovery.unmarked_ms(ALERT, GOOD, [], SEEN + 5) == 0
    assert recovery.unmarked_ms(ALERT, BAD, [], 0) == 0
    many = [Mark(1, str(number), 1, 1) for number in range(MOST_MARKS)]
    assert recovery.unmarked_ms(ALERT, GOOD, many, 0) == 0


def test_a_site_is_back_when_most_of_what_was_polled_answers() -> None:
    """Three good canaries are enough, one is not; many failures outweigh them."""
    good = dict.fromkeys(range(3), GOOD)
    assert recovery.site_back_ms(ALERT, 40, good) == SEEN + 5
    assert recovery.site_back_ms(ALERT, 40, {1: GOOD}) == 0
    assert recovery.site_back_ms(ALERT, 1, {1: GOOD}) == SEEN + 5
    assert recovery.site_back_ms(ALERT, 40, {**good, **dict.fromkeys(range(9, 13), BAD)}) == 0
    assert recovery.site_back_ms(ALERT, 40, {}) == 0


def test_a_rule_selects_devices_targets_and_sites_by_its_filter() -> None:
    """A filter of a collector selects a device by its targets; one of a tag selects no site."""
    snmp = replace(UNREACHABLE, where=target_filter.parse("collector:snmp"))
    other = replace(UNREACHABLE, where=target_filter.parse("collector:http"))
    assert list(level_signs.unreachable(KnownRules(1, [snmp]), device(1), SEEN))
    assert not list(level_signs.unreachable(KnownRules(1, [other]), device(1), SEEN))
    outage = Outage("ams", 1, SEEN, SEEN + 9)
    for text, number in (("site:ams", 1), ("site:ber", 0), ("tag:core", 0)):
        rules = KnownRules(1, [replace(DARK, where=target_filter.parse(text))])
        assert len(list(level_signs.dark(rules, outage))) == number
    off = KnownRules(1, [replace(UNREACHABLE, enabled=False)])
    assert not list(level_signs.unreachable(off, device(1), SEEN))


def test_a_failing_target_is_told_by_its_code() -> None:
    """A rule with codes tells of these only, and no rule of a target that is well."""
    codes = KnownRules(1, [replace(FAILING, condition=TargetFailing(("auth_failed",)))])
    assert list(level_signs.failing(codes, device(1), 1001, REFUSED))
    assert not list(level_signs.failing(codes, device(1), 1001, BAD))
    assert not list(level_signs.failing(KnownRules(1, [FAILING]), device(1), 1001, GOOD))


def test_data_are_missing_after_so_many_intervals() -> None:
    """The intervals are those of the target; its first one begins when it is made."""
    rules = KnownRules(1, [MISSING])
    wait = 5 * 60_000
    assert not list(level_signs.no_data(rules, device(1), 1001, SEEN, SEEN + wait))
    [sign] = level_signs.no_data(rules, device(1), 1001, SEEN, SEEN + wait + 1)
    assert (sign.since_ms, sign.value) == (SEEN, 5.0)
    assert level_signs.shortest_wait_ms(rules) == 5_000
    assert level_signs.shortest_wait_ms(KnownRules(1, [LOAD])) == 0


def test_a_mark_of_a_rule_that_is_gone_has_no_sign() -> None:
    """Marks stay on the board until the next poll; their rule may have gone before."""
    marks = [Mark(LOAD.id, "cpu=1", SEEN, SEEN, 9.0), Mark(99, "cpu=1", SEEN, SEEN)]
    [sign] = level_signs.marked(KnownRules(1, [LOAD]), device(1), 1001, marks)
    assert (sign.subject.series, sign.subject.target, sign.value) == ("cpu=1", "snmp", 9.0)


def test_a_trouble_of_the_platform_is_told_by_its_part() -> None:
    """The alert names the queue, sink, job or worker."""
    rule = Rule("behind", PlatformTrouble(PlatformProblem.SINK_BEHIND), id=9)
    trouble = Trouble(PlatformProblem.SINK_BEHIND, "influx", SEEN, "is down", 7.0)
    [sign] = level_signs.troubled_platform(KnownRules(1, [rule, LOAD]), trouble, SEEN + 9)
    assert sign.identity == "behind|platform|influx"
    assert (sign.since_ms, sign.seen_ms, sign.value) == (SEEN, SEEN + 9, 7.0)


@pytest.mark.parametrize(
    ("windows", "is_suspect"),
    [
        ([Window(polls=4, dark=4, seconds=20)], True),
        ([Window(polls=10, dark=2, seconds=20)], False),
        ([Window(polls=100, dark=5, seconds=20)], False),
        ([Window(), Window(polls=20, dark=9, seconds=60)], True),
        ([], False),
    ],
)
def test_a_site_may_turn_out_dark_if_many_of_its_polls_fail(
    windows: list[Window], is_suspect: bool
) -> None:
    """Half of the share that makes a site dark, and a third of the number."""
    assert may_be_dark(windows, Limits()) is is_suspect
