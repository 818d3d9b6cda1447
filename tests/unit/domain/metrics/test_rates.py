"""Polls to lines of rates: each counter is matched over polls, with its evidence."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.metrics import rates
from poller.domain.metrics.counters import Verdict
from poller.domain.metrics.rates import RateQuery
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.metrics.series_identity import Identity

MINUTE = 60_000
ASKED = RateQuery(MINUTE)
GIGABIT = {
    "ifHighSpeed": 1000,
    "ifSpeed": 1e9,
    "ifConnectorPresent": 1,
    "ifCounterDiscontinuityTime": 0,
}


def interface(name: str, index: int, octets: float, **about: float) -> list[Reading]:
    labels = {"ifIndex": str(index), "ifName": name}
    gauges = [Reading(metric, value, labels) for metric, value in about.items()]
    return [*gauges, Reading("ifHCInOctets", octets, labels, Kind.COUNTER, 64)]


def poll(minute: float, *found: list[Reading], uptime_s: float | None = None) -> rates.Poll:
    uptime = [] if uptime_s is None else [Reading("sysUpTime", uptime_s * 100)]
    return round(minute * MINUTE), ReadingSet.of(
        [*uptime, *(each for row in found for each in row)]
    )


def verdicts(
    polls: list[rates.Poll], asked: RateQuery = ASKED
) -> dict[str, list[tuple[str, float | None]]]:
    return {
        dict(line.known_by).get("ifName", "?"): [
            (rate.verdict.value, rate.per_second) for rate in line.rates
        ]
        for line in rates.compute(polls, asked).lines
    }


def test_every_counter_has_a_line_and_no_other_series() -> None:
    """A line has the labels of the newest poll."""
    polls = [
        poll(0, interface("eth0", 1, 0, **GIGABIT)),
        poll(1, interface("eth0", 1, 6_000, **GIGABIT)),
    ]
    [line] = rates.compute(polls, ASKED).lines
    assert (line.series.name, dict(line.series.labels)) == (
        "ifHCInOctets",
        {"ifIndex": "1", "ifName": "eth0"},
    )
    assert [(rate.verdict, rate.per_second) for rate in line.rates] == [
        (Verdict.FIRST, None),
        (Verdict.OK, 100),
    ]


def test_interfaces_that_change_places_keep_their_lines() -> None:
    """Unless the target goes by index."""
    polls = [
        poll(0, interface("eth0", 1, 0), interface("eth1", 2, 600_000)),
        poll(1, interface("eth1", 1, 606_000), interface("eth0", 2, 60)),
    ]
    found = verdicts(polls)
    assert found == {"eth0": [("first", None), ("ok", 1)], "eth1": [("first", None), ("ok", 100)]}
    by_index = rates.compute(polls, RateQuery(MINUTE, Identity.IF_INDEX)).lines
    assert [line.newest.verdict for line in by_index] == [Verdict.OK, Verdict.RESET]


def test_a_restart_sets_every_counter_of_the_device_back() -> None:
    """A counter that is higher than before is reset, too."""
    polls = [
        poll(0, interface("eth0", 1, 5), interface("eth1", 2, 9_000_000), uptime_s=1e6),
        poll(1, interface("eth0", 1, 700), interface("eth1", 2, 30), uptime_s=20),
        poll(2, interface("eth0", 1, 1_300), interface("eth1", 2, 630), uptime_s=80),
    ]
    line = [("first", None), ("reset", None), ("ok", 10)]
    assert verdicts(polls) == {"eth0": line, "eth1": line}


@pytest.mark.parametrize(
    ("about", "verdict"),
    [
        ({"ifHighSpeed": 10}, Verdict.IMPLAUSIBLE),
        ({"ifSpeed": 1e7}, Verdict.IMPLAUSIBLE),
        ({"ifSpeed": 2**32 - 1}, Verdict.OK),  # says only that it is fast
        ({"ifSpeed": 2**32 - 1, "ifHighSpeed": 10}, Verdict.IMPLAUSIBLE),
        ({"ifSpeed": 1e7, "ifHighSpeed": 100}, Verdict.OK),
        ({"ifSpeed": 0, "ifHighSpeed": 0}, Verdict.OK),
        ({"ifHighSpeed": 10, "ifConnectorPresent": 1}, Verdict.IMPLAUSIBLE),
        ({"ifHighSpeed": 10, "ifConnectorPresent": 2}, Verdict.OK),  # a tunnel's speed is only said
        ({"ifHighSpeed": float("nan")}, Verdict.OK),
        ({"ifHighSpeed": -10}, Verdict.OK),
    ],
)
def test_octets_are_held_against_the_speed_of_their_own_link(
    about: dict[str, float], verdict: Verdict
) -> None:
    """Here 50 Mbit/s are read."""
    polls = [
        poll(
            minute,
            interface("eth0", 1, minute * 60 * 6_250_000, **about),
            interface("slow", 2, 0, ifHighSpeed=1),
        )
        for minute in (0, 1)
    ]
    assert rates.compute(polls, ASKED).lines[0].newest.verdict is verdict


@pytest.mark.parametrize(
    ("metric", "verdict"), [("ifInUcastPkts", "implausible"), ("ifInErrors", "ok")]
)
def test_the_speed_limits_packets_too_but_not_errors(metric: str, verdict: str) -> None:
    """The shortest frame has 64 octets: 10 Mbit/s are 20,000 packets a second at most."""
    labels = {"ifIndex": "1"}
    polls = [
        poll(
            m,
            [
                Reading("ifHighSpeed", 10, labels),
                Reading(metric, m * 60 * 50_000, labels, Kind.COUNTER, 32),
            ],
        )
        for m in (0, 1)
    ]
    assert rates.compute(polls, ASKED).lines[0].newest.verdict == verdict


def test_a_discontinuity_resets_one_interface_only() -> None:
    """The counters of other interfaces have rates."""
    polls = [
        poll(0, interface("eth0", 1, 600, ifCounterDiscontinuityTime=0), interface("eth1", 2, 0)),
        poll(1, interface("eth0", 1, 700, ifCounterDiscontinuityTime=9), interface("eth1", 2, 60)),
    ]
    assert verdicts(polls) == {
        "eth0": [("first", None), ("reset", None)],
        "eth1": [("first", None), ("ok", 1)],
    }


def test_what_a_poll_lacks_is_bridged() -> None:
    """A table that did not answer once costs no rate; what is gone stands behind what is there."""
    polls = [
        poll(0, interface("gone", 1, 0), interface("eth0", 2, 0)),
        poll(1, interface("gone", 1, 60)),
        poll(2, interface("eth0", 2, 120)),
    ]
    assert verdicts(polls) == {
        "eth0": [("first", None), ("ok", 1)],
        "gone": [("first", None), ("ok", 1)],
    }
    assert list(verdicts(polls)) == ["eth0", "gone"]


def test_a_width_of_an_older_poll_is_kept() -> None:
    """A poll without types keeps the width of the poll before."""

    def counted(minute: float, value: float, width: int) -> rates.Poll:
        labels = {"ifIndex": "1"}
        found = [
            Reading("ifHighSpeed", 10, labels),
            Reading("ifInOctets", value, labels, Kind.COUNTER, width),
        ]
        return poll(minute, found)

    polls = [counted(0, 0, 32), counted(1, 2**32 - 600, 0), counted(2, 5_400, 0)]
    assert rates.compute([polls[0], *polls[1:]], ASKED).lines[0].newest.verdict is Verdict.WRAP
    assert rates.compute(polls[1:], ASKED).lines[0].newest.verdict is Verdict.RESET


def test_a_query_selects_counters_and_rates() -> None:
    """A query selects by metric, number and time; the total counts all."""
    polls = [
        poll(m, interface("eth0", 1, m), interface("eth1", 2, m), [_counter("other", m)])
        for m in range(5)
    ]
    answer = rates.compute(polls, RateQuery(MINUTE, limit=1, since_ms=3 * MINUTE))
    assert (len(answer.lines), answer.total) == (1, 3)
    assert [rate.at_ms for rate in answer.lines[0].rates] == [3 * MINUTE, 4 * MINUTE]
    second = rates.compute(polls, RateQuery(MINUTE, limit=1, offset=1))
    assert [dict(line.known_by) for line in second.lines] == [{"ifName": "eth1"}]
    named = rates.compute(polls, RateQuery(MINUTE, selects=lambda series: series.name == "other"))
    assert [line.series.name for line in named.lines] == ["other"]
    assert rates.compute([], ASKED).lines == []


def test_mean_and_highest_leave_out_spans_without_a_rate() -> None:
    """A mean is by time: a long span counts for more."""
    polls = [poll(at, [_counter("c", value)]) for at, value in [(0, 0), (1, 60), (2, 30), (4, 270)]]
    [line] = rates.compute(polls, ASKED).lines
    assert [rate.per_second for rate in line.rates] == [None, 1, None, 2]
    assert (line.highest(), line.mean()) == (2, pytest.approx(300 / 180))
    [single] = rates.compute(polls[:1], ASKED).lines
    assert (single.highest(), single.mean()) == (None, None)


@pytest.mark.parametrize(
    ("metric", "rate_mbit", "verdict"),
    [
        ("routeros_interface_rx_byte", 10, Verdict.IMPLAUSIBLE),
        ("routeros_interface_rx_byte", 1000, Verdict.OK),
        ("routeros_interface_tx_packet", 10, Verdict.OK),
        ("routeros_interface_rx_error", 0.001, Verdict.OK),
    ],
)
def test_a_router_of_another_protocol_has_links_too(
    metric: str, rate_mbit: float, verdict: Verdict
) -> None:
    """The rate of its link is read with another family, under the same label."""
    labels = {"name": "ether1"}
    polls = [
        poll(
            m,
            [
                Reading("routeros_interface_rate", rate_mbit, labels),
                Reading(metric, m * 60 * growth, labels, Kind.COUNTER, 64),
            ],
        )
        for m, growth in ((0, 0), (1, 6_250_000 if metric.endswith("byte") else 1000))
    ]
    [line] = rates.compute(polls, ASKED).lines
    assert line.newest.verdict is verdict


def test_the_uptime_of_routeros_is_evidence_too() -> None:
    """RouterOS counts seconds and does not start over after 497 days."""
    days = 600 * 86_400

    def routed(minute: float, value: float, uptime_s: float) -> rates.Poll:
        return poll(
            minute,
            [
                Reading("routeros_system_uptime", uptime_s),
                _counter("routeros_interface_rx_byte", value),
            ],
        )

    line: Any = rates.compute(
        [routed(0, 0, days), routed(1, 60, days + 60), routed(2, 99, 15)], ASKED
    ).lines[0]
    assert [rate.verdict.value for rate in line.rates] == ["first", "ok", "reset"]


def _counter(name: str, value: float) -> Reading:
    return Reading(name, value, {}, Kind.COUNTER)
