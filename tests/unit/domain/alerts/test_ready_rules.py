"""The ten ready rules of docs/examples/rules.yaml: each fires when it should, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from poller.domain.alerts import judgement, rule_form
from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import DeviceUnreachable, NoData, Rule, TargetFailing
from poller.domain.alerts.rules import would_fire
from poller.domain.alerts.rules.would_fire import Held, Pair
from poller.domain.inventory.filter_match import DeviceFacts, FilterMatch
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.record.event_kinds import Event
from poller.domain.record.event_kinds import Kind as EventKind

FILE = Path(__file__).parents[4] / "docs" / "examples" / "rules.yaml"
RULES = {rule.name: rule for rule in rule_form.parse_all(yaml.safe_load(FILE.read_text()))}
BEGIN_MS = 1_800_000_000_000
MINUTE_MS = 60_000
DAY_S = 86_400
GIGABIT = 125_000_000.0  # octets a second
PORT = {"ifIndex": "1", "ifName": "eth1", "ifAlias": "UPLINK to ber"}
#: The state of an interface by RFC 2863.
UP, DOWN = 1.0, 2.0


@dataclass(frozen=True)
class Case:
    """Values of one metric, a minute apart: the alert fires and ends at these minutes (0: open)."""

    metric: str
    values: Sequence[float]
    fires: int
    ends: int = 0
    kind: Kind = Kind.GAUGE
    labels: Sequence[tuple[str, str]] = ()
    beside: Sequence[tuple[str, float]] = ()  # other metrics of every poll


def grown(*rates: float) -> list[float]:
    """The values of a counter that grows by these rates a second."""
    values = [1e9]
    for rate in rates:
        values.append(values[-1] + rate * 60)
    return values


ALIKE = tuple(PORT.items())
CASES = {
    "uplink-full": Case(
        "ifHCInOctets",
        grown(*[0.5 * GIGABIT] * 3, *[0.9 * GIGABIT] * 7, 0.75 * GIGABIT, *[0.5 * GIGABIT] * 4),
        fires=9,
        ends=14,
        kind=Kind.COUNTER,
        labels=ALIKE,
        beside=[("ifHighSpeed", 1000.0)],
    ),
    "uplink-down": Case(
        "ifOperStatus",
        [UP, UP, DOWN, DOWN, UP],
        fires=2,
        ends=4,
        labels=ALIKE,
        beside=[("ifAdminStatus", UP)],
    ),
    "link-errors": Case(
        "ifInErrors",
        grown(0.0, *[3.0] * 7, 0.5, *[0.0] * 3),
        fires=7,
        ends=20,
        kind=Kind.COUNTER,
        labels=ALIKE,
    ),
    "processor-busy": Case("hrProcessorLoad", [20.0, *[95.0] * 12, 85.0, 50.0], fires=11, ends=14),
    "packet-loss": Case("ping_loss_ratio", [0.0, *[0.2] * 5, 0.0, 0.0], fires=4, ends=9),
    "battery-low": Case("upsEstimatedChargeRemaining", [100.0, 40.0, 60.0, 90.0], fires=1, ends=3),
    "certificate-ends": Case("http_tls_expiry_seconds", [22.0 * DAY_S, 20.9 * DAY_S], fires=1),
}


def polls_of(case: Case) -> list[tuple[int, ReadingSet]]:
    labels = dict(case.labels)
    polls = []
    for minute, value in enumerate(case.values):
        read = [Reading(case.metric, value, labels, case.kind, 64)]
        read += [Reading(name, number, labels) for name, number in case.beside]
        polls.append((BEGIN_MS + minute * MINUTE_MS, ReadingSet.of(read)))
    return polls


def fired(rule: Rule, held: list[Held]) -> list[tuple[float, float]]:
    now_ms = BEGIN_MS + 1_000 * MINUTE_MS
    found = would_fire.firings(held, rule.for_ms, rule.keep_ms, now_ms)
    return [
        ((each.fired_ms - BEGIN_MS) // MINUTE_MS, each.ended_ms and each.ended_ms - BEGIN_MS)
        for each in found
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_ready_rule_of_a_metric_fires_and_ends(name: str) -> None:
    """The polls go over the threshold, stay for long enough, and come back."""
    case, rule = CASES[name], RULES[name]
    spans = judgement.replay(rule, polls_of(case), MINUTE_MS)
    subject = Subject(1, 2, "sw1", "snmp", "ams")
    held = [
        Held(replace(subject, series=span.series), span.since_ms, span.until_ms) for span in spans
    ]
    assert fired(rule, held) == [(case.fires, case.ends * MINUTE_MS)]


def test_an_interface_without_the_description_is_no_uplink() -> None:
    """The pattern of the label decides."""
    case = replace(CASES["uplink-down"], labels=[("ifIndex", "1"), ("ifName", "eth1")])
    assert list(judgement.replay(RULES["uplink-down"], polls_of(case), MINUTE_MS)) == []


def test_a_ready_rule_of_a_core_device_is_for_those() -> None:
    """The filter takes devices with the tag only."""
    for name in ("core-unreachable", "core-without-data", "uplink-full"):
        match = FilterMatch(RULES[name].where)
        assert match.accepts(DeviceFacts("sw1", tags=["core"]))
        assert not match.accepts(DeviceFacts("sw2", tags=["edge"]))


def test_a_device_that_is_down_is_told_at_once() -> None:
    """The platform has confirmed it before, so the rule does not wait."""
    rule = RULES["core-unreachable"]
    assert isinstance(rule.condition, DeviceUnreachable)
    pair = Pair(EventKind.DEVICE_WENT_DOWN, EventKind.DEVICE_RECOVERED)
    events = [
        Event(BEGIN_MS + 2 * MINUTE_MS, pair.bad, "", device_id=1),
        Event(BEGIN_MS + 4 * MINUTE_MS, pair.good, "", device_id=1),
    ]
    held = would_fire.held_by_events(events, pair, {"device:1": Subject(1)}, BEGIN_MS)
    assert fired(rule, held) == [(2, 4 * MINUTE_MS)]


def test_a_refused_login_is_told_and_a_time_out_is_not() -> None:
    """The codes of the rule decide."""
    rule = RULES["login-refused"]
    assert isinstance(rule.condition, TargetFailing)
    pair = Pair(EventKind.TARGET_FAILED, EventKind.TARGET_RECOVERED)
    codes: list[dict[str, Any]] = [{"code": "timeout"}, {"code": "auth_failed"}]
    events = [
        Event(BEGIN_MS + MINUTE_MS, pair.bad, "", target_id=number, data=data)
        for number, data in enumerate(codes)
    ]
    subjects = {f"target:{number}": Subject(1, number) for number in (0, 1)}
    held = would_fire.held_by_events(events, pair, subjects, BEGIN_MS)
    [told] = would_fire.with_codes(held, rule.condition.codes)
    assert told.subject.target_id == 1


def test_three_missed_intervals_are_no_data() -> None:
    """Two missed polls are none."""
    rule = RULES["core-without-data"]
    assert isinstance(rule.condition, NoData)
    longest_ms = round(rule.condition.intervals * MINUTE_MS)
    good_ms = [BEGIN_MS + minute * MINUTE_MS for minute in (0, 1, 4, 8, 9)]
    now_ms = BEGIN_MS + 10 * MINUTE_MS
    held = would_fire.without_polls(Subject(1, 2), good_ms, longest_ms, BEGIN_MS, now_ms)
    assert fired(rule, list(held)) == [(7, 8 * MINUTE_MS)]


def test_every_ready_rule_has_a_test() -> None:
    """There are ten of them."""
    others = {"core-unreachable", "login-refused", "core-without-data"}
    assert CASES.keys() | others == RULES.keys()
    assert len(RULES) == 10
