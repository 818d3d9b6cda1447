"""Polls judged by metric rules: what holds, what ends, and what a poll does not tell."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from poller.domain.alerts import judgement
from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.judging.plan_maker import plan_of
from poller.domain.alerts.judging.rule_set import RuleSet, metric_rule
from poller.domain.alerts.mark import MOST_MARKS, Mark
from poller.domain.alerts.rule import (
    CertificateExpiry,
    DeviceUnreachable,
    InterfaceDown,
    Measure,
    Rule,
    Threshold,
)
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from tests.unit.domain.alerts.watched_polls import (
    BEGIN_MS,
    BUSY,
    DAY_MS,
    DOWN,
    FAST,
    HOT,
    IN_OCTETS,
    MEGABIT,
    MINUTE_MS,
    Watcher,
    readings,
)

ETH0, ETH1 = "ifName=eth0", "ifName=eth1"


def octets(*values: float) -> dict[str, list[float]]:
    return {IN_OCTETS: list(values)}


def states(*operating: float, admin: float = 1.0) -> dict[str, list[float]]:
    return {"ifOperStatus": list(operating), "ifAdminStatus": [admin] * len(operating)}


# Values.


def test_what_a_device_says_cannot_hold_back_the_alerts() -> None:
    """PostgreSQL stores no NUL: in a name or label it would stop every alert."""
    said = {"sensor": "psu\x001\n"}
    series = "sensor=psu 1 "
    watcher = Watcher(HOT)
    assert watcher.poll(ReadingSet.of([Reading("temperature", 70.0, said)])) == {series: 70}
    assert watcher.marks[0].labels == {"sensor": "psu 1 "}
    assert watcher.poll(ReadingSet.of([Reading("temperature", 55.0, said)])) == {series: 55}
    assert watcher.poll(ReadingSet.of([Reading("temperature", 40.0, said)])) == {}


def test_a_value_above_its_threshold_makes_a_mark() -> None:
    watcher = Watcher(HOT)
    assert watcher.poll({"temperature": 60.0}) == {}
    assert watcher.poll({"temperature": 60.5}) == {"": 60.5}
    assert watcher.last.is_news
    [mark] = watcher.marks
    assert (mark.rule_id, mark.since_ms, mark.at_ms) == (1, watcher.at_ms, watcher.at_ms)


def test_a_mark_ends_at_clear_only() -> None:
    """Between clear and the threshold a mark goes on, and none begins."""
    watcher = Watcher(HOT)
    assert watcher.poll({"temperature": 55.0}) == {}
    watcher.poll({"temperature": 61.0})
    assert watcher.poll({"temperature": 50.5}) == {"": 50.5}
    assert watcher.poll({"temperature": 50.0}) == {}
    assert watcher.last.is_news
    assert watcher.poll({"temperature": 55.0}) == {}


def test_a_threshold_from_below_has_its_clear_above() -> None:
    watcher = Watcher(Threshold("voltage", below=11.0, clear=12.0))
    assert watcher.poll({"voltage": 11.0}) == {}
    assert watcher.poll({"voltage": 10.9}) == {"": 10.9}
    assert watcher.poll({"voltage": 11.9}) == {"": 11.9}
    assert watcher.poll({"voltage": 12.0}) == {}


def test_negative_values_are_compared_as_numbers() -> None:
    watcher = Watcher(Threshold("dbm", below=-20.0), Threshold("dbm", above=-2.0))
    assert watcher.poll({"dbm": [-21.0, -10.0]}) == {ETH0: -21.0}
    assert watcher.poll({"dbm": [-10.0, -1.0]}) == {ETH1: -1.0}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_no_number_changes_no_mark(value: float) -> None:
    watcher = Watcher(HOT)
    assert watcher.poll({"temperature": value}) == {}
    watcher.poll({"temperature": 61.0})
    assert watcher.poll({"temperature": value}) == {"": 61.0}
    assert watcher.last.marks is None


def test_labels_choose_the_series() -> None:
    """All patterns must fit, and a label that is missing fits none."""
    fits = replace(HOT, labels=(("ifName", "eth*"), ("ifAlias", "to eth1")))
    other = replace(HOT, labels=(("rack", "*"),))
    assert Watcher(fits, other).poll({"temperature": [70.0, 70.0]}) == {ETH1: 70.0}


def test_a_mark_has_the_labels_of_its_series() -> None:
    watcher = Watcher(HOT)
    watcher.poll({"temperature": [70.0, 20.0]})
    assert watcher.marks[0].labels == {"ifIndex": "1", "ifName": "eth0", "ifAlias": "to eth0"}


def test_several_rules_look_at_one_series() -> None:
    watcher = Watcher(HOT, replace(HOT, above=80.0))
    watcher.poll({"temperature": 70.0})
    assert [mark.rule_id for mark in watcher.marks] == [1]
    watcher.poll({"temperature": 90.0})
    assert [mark.rule_id for mark in watcher.marks] == [1, 2]


def test_a_certificate_is_told_in_days() -> None:
    watcher = Watcher(CertificateExpiry(days=14.0))
    assert watcher.poll({"http_tls_expiry_seconds": 15 * 86_400.0}) == {}
    assert watcher.poll({"http_tls_expiry_seconds": 13.5 * 86_400}) == {"": 13.5}
    assert watcher.poll({"http_tls_expiry_seconds": -86_400.0}, 2 * MINUTE_MS) == {"": -1.0}
    assert watcher.poll({"http_tls_expiry_seconds": 90 * 86_400.0}) == {}


# Rates.


def test_a_rate_takes_two_polls() -> None:
    watcher = Watcher(FAST)
    assert watcher.poll(octets(1e9, 1e9)) == {}
    assert watcher.poll(octets(1e9 + 60_000, 1e9 + 60_060)) == {ETH1: 1001.0}
    assert watcher.poll(octets(2e9, 1e9 + 60_120), 120_000) == {ETH0: pytest.approx(8332833 / 1)}


def test_a_reset_counter_is_no_high_rate() -> None:
    watcher = Watcher(FAST)
    watcher.poll(octets(5e12, 5e12))
    assert watcher.poll(octets(1e6, 5e12)) == {}


def test_a_sample_that_was_wrong_is_no_high_rate() -> None:
    """Some agents answer 0 now and then: the counter is back at the next poll."""
    watcher = Watcher(FAST)
    watcher.poll(octets(5e12, 5e12))
    assert watcher.poll(octets(0.0, 5e12)) == {}
    assert watcher.poll(octets(5e12 + 600, 5e12)) == {}
    assert watcher.poll(octets(5e12 + 1200, 5e12)) == {}


def test_a_full_counter_of_32_bits_goes_on() -> None:
    watcher = Watcher(replace(FAST, metric="ifInErrors"))
    watcher.poll({"ifInErrors": [2.0**32 - 1, 0.0], "sysUpTime": 1e6})
    found = watcher.poll({"ifInErrors": [119_999.0, 0.0], "sysUpTime": 1e6 + 6000})
    assert found == {ETH0: 2000.0}


def test_a_poll_without_a_verdict_keeps_the_mark() -> None:
    """After a reset nobody knows how fast the counter is."""
    watcher = Watcher(FAST)
    watcher.poll(octets(0.0, 0.0))
    assert watcher.poll(octets(600_000.0, 0.0)) == {ETH0: 10_000.0}
    assert watcher.poll(octets(10.0, 0.0)) == {ETH0: 10_000.0}
    assert watcher.poll(octets(20.0, 0.0)) == {}


def test_an_average_over_a_gap_shows_too_much_but_ends_nothing() -> None:
    watcher = Watcher(FAST)
    watcher.poll(octets(0.0, 0.0))
    assert watcher.poll(octets(1.2e7, 0.0), 10 * MINUTE_MS) == {ETH0: 20_000.0}
    assert watcher.poll(octets(1.2e7, 0.0), 10 * MINUTE_MS) == {ETH0: 20_000.0}
    assert watcher.poll(octets(1.2e7, 0.0)) == {}


def test_a_low_rate_needs_two_polls_in_order() -> None:
    watcher = Watcher(Threshold(IN_OCTETS, Measure.RATE, below=10.0))
    assert watcher.poll(octets(0.0, 0.0)) == {}
    assert watcher.poll(octets(600.0, 540.0)) == {ETH1: 9.0}
    assert watcher.poll(octets(1200.0, 1140.0), 10 * MINUTE_MS) == {ETH1: 9.0}
    assert watcher.poll(octets(1800.0, 1740.0)) == {}


def test_a_rate_is_compared_with_the_speed_of_its_link() -> None:
    """Each link has its own limit; a rate of octets is one of bits."""
    watcher = Watcher(BUSY)
    speeds = {"ifHighSpeed": [100.0, 1000.0], "ifConnectorPresent": [1.0, 1.0]}
    watcher.poll({**octets(0.0, 0.0), **speeds})
    grown = 60 * 85 * MEGABIT
    assert watcher.poll({**octets(grown, grown), **speeds}) == {ETH0: 85.0}
    more = grown + 60 * 75 * MEGABIT
    assert watcher.poll({**octets(more, more), **speeds}) == {ETH0: 75.0}
    most = more + 60 * 70 * MEGABIT
    assert watcher.poll({**octets(most, most), **speeds}) == {}


def test_the_speed_of_a_slow_link_is_in_bits() -> None:
    watcher = Watcher(BUSY)
    speeds = {"ifSpeed": [64_000.0, 2.0**32 - 1]}
    watcher.poll({**octets(0.0, 0.0), **speeds})
    assert watcher.poll({**octets(60 * 7_200, 1e12), **speeds}) == {ETH0: 90.0}


def test_a_link_without_a_speed_has_no_percentage() -> None:
    watcher = Watcher(BUSY)
    watcher.poll(octets(0.0, 0.0))
    assert watcher.poll(octets(1e15, 1e15)) == {}


def test_a_nominal_speed_is_no_limit_of_a_tunnel() -> None:
    """A tunnel of 9 kbit/s that carries a gigabit is not at 10,000 %."""
    watcher = Watcher(BUSY)
    tunnel = {"ifSpeed": [9_000.0, 9_000.0], "ifConnectorPresent": [2.0, 2.0]}
    watcher.poll({**octets(0.0, 0.0), **tunnel})
    assert watcher.poll({**octets(60 * 1e8, 60 * 1012.5), **tunnel}) == {ETH1: 90.0}


def test_a_changed_speed_counts_at_once() -> None:
    watcher = Watcher(BUSY)
    watcher.poll({**octets(0.0, 0.0), "ifHighSpeed": [1000.0, 1000.0]})
    slow = {"ifHighSpeed": [100.0, 1000.0]}
    assert watcher.poll({**octets(60 * 90 * MEGABIT, 0.0), **slow}) == {ETH0: 90.0}


def test_a_counter_of_the_device_has_no_series_name() -> None:
    watcher = Watcher(FAST)
    watcher.poll({IN_OCTETS: 0.0})
    assert watcher.poll({IN_OCTETS: 1e6}) == {"": pytest.approx(1e6 / 60)}


def test_a_rate_of_a_gauge_is_not_judged() -> None:
    watcher = Watcher(replace(FAST, metric="temperature"))
    watcher.poll({"temperature": 0.0})
    assert watcher.poll({"temperature": 1e9}) == {}


# Interfaces.


def test_an_interface_that_goes_down_makes_a_mark() -> None:
    watcher = Watcher(DOWN)
    assert watcher.poll(states(1.0, 2.0)) == {}
    assert watcher.poll(states(2.0, 2.0)) == {ETH0: None}
    assert watcher.poll(states(2.0, 2.0), DAY_MS) == {ETH0: None}
    assert watcher.poll(states(1.0, 2.0)) == {}


@pytest.mark.parametrize("operating", [2.0, 6.0, 7.0])
def test_several_states_are_down(operating: float) -> None:
    watcher = Watcher(DOWN)
    watcher.poll(states(1.0, 1.0))
    assert watcher.poll(states(operating, 1.0)) == {ETH0: None}


@pytest.mark.parametrize("operating", [3.0, 4.0, 5.0, math.nan])
def test_a_state_that_says_neither_changes_nothing(operating: float) -> None:
    watcher = Watcher(DOWN)
    watcher.poll(states(1.0, 1.0))
    assert watcher.poll(states(operating, 1.0)) == {}
    watcher.poll(states(1.0, 1.0))
    watcher.poll(states(2.0, 1.0))
    assert watcher.poll(states(operating, 1.0)) == {ETH0: None}


@pytest.mark.parametrize("between", [4.0, 5.0, math.nan])
def test_an_interface_that_says_nothing_in_between_still_goes_down(between: float) -> None:
    watcher = Watcher(DOWN)
    watcher.poll(states(1.0, 1.0))
    watcher.poll(states(between, 1.0))
    watcher.poll(states(between, 1.0))
    assert watcher.poll(states(2.0, 1.0)) == {ETH0: None}


def test_an_interface_that_a_poll_lacks_still_goes_down() -> None:
    """The poll after it is compared with the one before it."""
    watcher = Watcher(DOWN, FAST)
    watcher.poll({**states(1.0, 1.0), **octets(0.0, 0.0)})
    watcher.poll(octets(60.0, 60.0), is_whole=False)
    watcher.poll({**states(2.0, 1.0), **octets(240_000.0, 120.0)})
    assert [(mark.rule_id, mark.value) for mark in watcher.marks] == [(2, 2000.0), (1, None)]


def test_a_part_that_is_missing_for_long_holds_back_no_rate() -> None:
    """From then on polls without it are compared with each other."""
    watcher = Watcher(DOWN, FAST)
    watcher.poll({**states(1.0, 1.0), **octets(0.0, 0.0)})
    for minute in range(1, 4):
        watcher.poll(octets(60.0 * minute, 0.0), is_whole=False)
    assert watcher.poll(octets(600_000.0, 0.0), is_whole=False) == {ETH0: pytest.approx(9997.0)}


def test_an_interface_that_was_switched_off_is_not_told() -> None:
    watcher = Watcher(DOWN)
    watcher.poll(states(1.0, 1.0))
    assert watcher.poll(states(2.0, 2.0, admin=2.0)) == {}
    assert watcher.poll(states(2.0, 2.0)) == {}


def test_switching_an_interface_off_ends_its_mark() -> None:
    watcher = Watcher(DOWN)
    watcher.poll(states(1.0, 1.0))
    watcher.poll(states(2.0, 1.0))
    assert watcher.poll(states(2.0, 1.0, admin=2.0)) == {}


def test_an_interface_without_an_admin_state_counts_as_enabled() -> None:
    watcher = Watcher(DOWN)
    watcher.poll({"ifOperStatus": [1.0, 1.0]})
    assert watcher.poll({"ifOperStatus": [2.0, 1.0]}) == {ETH0: None}


def test_an_interface_that_is_down_for_days_is_meant_to_be() -> None:
    watcher = Watcher(InterfaceDown(days=2.0))
    watcher.poll(states(1.0, 1.0))
    watcher.poll(states(2.0, 1.0))
    assert watcher.poll(states(2.0, 1.0), 2 * DAY_MS) == {ETH0: None}
    assert watcher.poll(states(2.0, 1.0)) == {}
    assert watcher.poll(states(2.0, 1.0)) == {}


def test_a_poll_before_from_long_ago_proves_nothing() -> None:
    watcher = Watcher(InterfaceDown(days=2.0))
    watcher.poll(states(1.0, 1.0))
    assert watcher.poll(states(2.0, 1.0), 3 * DAY_MS) == {}


def test_an_interface_of_routeros_goes_down() -> None:
    watcher = Watcher(DOWN)

    def poll(running: float, disabled: float) -> dict[str, float | None]:
        names = {"name": "ether1"}
        return watcher.poll(
            ReadingSet.of(
                [
                    Reading("routeros_interface_running", running, names),
                    Reading("routeros_interface_disabled", disabled, names),
                ]
            )
        )

    assert poll(1.0, 0.0) == {}
    assert poll(0.0, 0.0) == {"name=ether1": None}
    assert poll(0.0, 1.0) == {}


def test_the_names_of_states_are_not_taken_for_interfaces() -> None:
    """A module may make a series for each name of a state."""
    labels = {"ifIndex": "1", "ifOperStatus": "up"}
    watcher = Watcher(DOWN)
    watcher.poll(ReadingSet.of([Reading("ifOperStatus", 1.0, labels)]))
    assert watcher.poll(ReadingSet.of([Reading("ifOperStatus", 2.0, labels)])) == {}


def test_only_a_down_interface_wants_history() -> None:
    """A worker reads the stored poll of a new target only if it could matter."""
    rules = RuleSet((metric_rule(1, DOWN), metric_rule(2, FAST)))

    def wants(polled: dict[str, list[float]]) -> bool:
        given = readings({**polled, **octets(1.0, 1.0)})
        return judgement.wants_history(plan_of(rules, given.series), given)

    assert wants(states(1.0, 2.0))
    assert not wants(states(1.0, 1.0))
    assert not wants(states(2.0, 2.0, admin=2.0))


# What stays.


def test_a_quiet_poll_leaves_everything_as_it_was() -> None:
    watcher = Watcher(HOT, FAST, DOWN)
    values = {"temperature": 20.0, **octets(1.0, 1.0), **states(1.0, 1.0)}
    watcher.poll(values)
    watcher.poll(values)
    assert (watcher.last.marks, watcher.last.is_news, watcher.stored) == (None, False, "")


def test_a_mark_that_goes_on_is_refreshed_once_a_minute() -> None:
    """That is no news: nothing begins or ends."""
    watcher = Watcher(HOT)
    watcher.poll({"temperature": 70.0})
    assert watcher.poll({"temperature": 71.0}, 10_000) == {"": 70.0}
    assert watcher.last.marks is None
    assert watcher.poll({"temperature": 72.0}, 50_000) == {"": 72.0}
    assert not watcher.last.is_news
    [mark] = watcher.marks
    assert (mark.since_ms, mark.at_ms) == (BEGIN_MS + MINUTE_MS, watcher.at_ms)


def test_interfaces_that_are_numbered_anew_keep_their_marks_and_rates() -> None:
    """A restart may give other indexes: the name counts."""
    watcher = Watcher(FAST, DOWN)
    before = {**octets(0.0, 0.0), **states(1.0, 1.0)}
    watcher.poll(readings(before, ("eth0", "eth1")))
    after = {**octets(120_000.0, 1e6), **states(1.0, 2.0)}
    found = watcher.poll(readings(after, ("eth1", "eth0"), first=7))
    assert found == {ETH1: 2000.0, ETH0: None}
    assert {mark.rule_id for mark in watcher.marks if mark.series == ETH0} == {1, 2}


def test_a_series_that_is_gone_for_long_ends_its_mark() -> None:
    """A poll that lacks a part tells nothing about it."""
    watcher = Watcher(HOT)
    watcher.poll({"temperature": [70.0, 20.0]})
    other = readings({"temperature": [20.0]}, ("eth1",))
    assert watcher.poll(other, 14 * MINUTE_MS) == {ETH0: 70.0}
    assert watcher.poll(other, 14 * MINUTE_MS, is_whole=False) == {ETH0: 70.0}
    assert watcher.poll(other) == {}


def test_the_mark_of_a_rule_that_no_longer_applies_ends() -> None:
    watcher = Watcher(HOT)
    watcher.poll({"temperature": 70.0})
    watcher.rules = RuleSet(())
    assert watcher.poll({"temperature": 70.0}) == {}
    assert watcher.last.is_news


def test_a_worker_with_old_rules_keeps_the_marks_of_new_ones() -> None:
    watcher = Watcher(HOT)
    newer = Mark(9, "x", BEGIN_MS, BEGIN_MS)
    watcher.stored = mark_format.pack([newer])
    assert watcher.poll({"temperature": 70.0}, is_current=False) == {"x": None, "": 70.0}
    assert watcher.poll({"temperature": 70.0}) == {"": 70.0}


def test_a_target_has_a_bounded_number_of_marks() -> None:
    """Those that are there stay; no poll after that is news."""
    names = [f"eth{number}" for number in range(300)]
    watcher = Watcher(HOT)
    values = readings({"temperature": [70.0] * 300}, names)
    assert len(watcher.poll(values)) == MOST_MARKS
    watcher.poll(values, 1_000)
    assert watcher.last.marks is None


def test_damaged_marks_are_replaced() -> None:
    watcher = Watcher(HOT)
    watcher.stored = "[[rubbish"
    assert watcher.poll({"temperature": 20.0}) == {}
    assert watcher.last.marks == []


def test_like_devices_share_one_plan() -> None:
    """Only the texts of their labels differ."""
    rules = RuleSet((metric_rule(1, HOT), metric_rule(2, DOWN), metric_rule(3, BUSY)))
    values = {"temperature": [1.0, 2.0], **octets(1.0, 2.0), **states(1.0, 1.0)}
    one = plan_of(rules, readings(values).series)
    other = plan_of(rules, readings(values, ("ge-0", "ge-1")).series)
    assert one is other
    shared = readings(values, ("xe-0", "xe-1")).series.shared()
    assert plan_of(rules, shared) is plan_of(rules, shared)


# Replay.


def rule(condition: object) -> Rule:
    return Rule("r", condition, id=5)  # type: ignore[arg-type]


def test_a_replay_tells_when_a_rule_held() -> None:
    """As a worker would have judged it, with the value of the first poll."""
    course = [20.0, 61.0, 55.0, 49.0, 62.0, 63.0]
    polls = [
        (BEGIN_MS + number * MINUTE_MS, readings({"temperature": value}))
        for number, value in enumerate(course)
    ]
    spans = list(judgement.replay(rule(HOT), polls))
    assert [(span.since_ms - BEGIN_MS, span.until_ms, span.value) for span in spans] == [
        (MINUTE_MS, BEGIN_MS + 3 * MINUTE_MS, 61.0),
        (4 * MINUTE_MS, 0, 62.0),
    ]


def test_a_replay_of_interfaces_names_the_series() -> None:
    polls = [
        (BEGIN_MS + number * MINUTE_MS, readings(states(*each)))
        for number, each in enumerate([(1.0, 1.0), (2.0, 1.0), (1.0, 2.0)])
    ]
    spans = list(judgement.replay(rule(DOWN), polls))
    assert [(span.series, span.until_ms > 0) for span in spans] == [(ETH0, True), (ETH1, False)]
    assert spans[0].labels["ifAlias"] == "to eth0"


def test_a_rule_of_another_kind_has_no_replay() -> None:
    polls = [(BEGIN_MS, readings({"temperature": 99.0}))]
    assert list(judgement.replay(rule(DeviceUnreachable()), polls)) == []


def test_a_counter_without_a_name_of_its_own_is_known_by_its_index() -> None:
    """Two interfaces of one name are told apart."""
    watcher = Watcher(HOT)
    found = watcher.poll(readings({"temperature": [70.0, 70.0]}, ("eth0", "eth0")))
    assert sorted(found) == ["ifIndex=1", "ifIndex=2"]


def test_a_counter_kind_is_known_by_the_poll() -> None:
    """A rate is one of a counter, whatever its name."""
    watcher = Watcher(replace(FAST, metric="things"))
    watcher.poll(ReadingSet.of([Reading("things", 0.0, {}, Kind.COUNTER)]))
    found = watcher.poll(ReadingSet.of([Reading("things", 1e6, {}, Kind.COUNTER)]))
    assert found == {"": pytest.approx(1e6 / 60)}
