"""PromQL over remote write against the verdict engine: a router reboots, and counters wrap.

A simulated router is polled by SNMP every 15 seconds of its own clock. Two sinks take turns, as two
workers do, and share only Redis.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import redis

from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import rates
from poller.domain.metrics.counters import Rate, Verdict
from poller.domain.metrics.rates import Line, Poll, RateQuery
from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Identity
from poller.settings import Settings
from poller.sim import fleet
from poller.sim.clock import Clock
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp.snmp_server import SnmpServer
from poller.sinks.api import Sample, Stores
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.remote_write.options import RemoteWriteOptions
from tests.integration.store_servers import Prometheus
from tests.remote_write_receiver import receiving
from tests.unit.collectors.polls import polled

#: A Counter32 of a link of 1 Gbit/s fills in 34 s: a longer interval leaves its wraps in doubt.
INTERVAL = 15_000
POLLS = 40
#: The clock of the routers: at this instant some of their counters are about to wrap.
SIM_S = 1_794_980_000
#: Intervals of the windows that are compared.
WINDOWS = (1, 2, 5, 12)


class StepClock(Clock):
    """A clock that a test sets."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds


class Watched(NamedTuple):
    """The polls of one router, an interval apart."""

    target: PollTarget
    polls: list[Poll]

    def samples(self) -> list[Sample]:
        return [Sample(self.target, at_ms, readings) for at_ms, readings in self.polls]


async def _polls(device: SimDevice, first_ms: int) -> list[Poll]:
    clock = StepClock()
    server = SnmpServer([device], clock=clock)
    port = server.open(0)
    collector = SnmpCollector()
    found: list[Poll] = []
    try:
        for number in range(POLLS):
            at_ms = first_ms + number * INTERVAL
            StepClock.seconds = SIM_S + number * INTERVAL / 1000
            report = await polled(
                collector,
                device.address,
                Community(community=fleet.COMMUNITY),
                port=port,
                modules="system,if_mib",
            )
            assert report.outcome.readings is not None, report.outcome.message
            found.append((at_ms, report.outcome.readings))
    finally:
        server.close()
    return found


@pytest.fixture(scope="module")
def routers() -> dict[Fault, Watched]:
    """A router that reboots every few minutes, and one whose counters have counted for months."""
    every = fleet.devices(40, faulty_share=0)
    first = next(device for device in every if device.model == "access-8")
    first_ms = (time.time_ns() // 1_000_000 // INTERVAL - POLLS - 1) * INTERVAL
    watched = {}
    for number, fault in enumerate((Fault.NONE, Fault.REBOOT), 1):
        device = replace(first, fault=fault)
        target = PollTarget(
            number, 1, f"{fault}/snmp", number, str(fault), device.address, "ams", "snmp",
            INTERVAL, 10_000,
        )  # fmt: skip
        watched[fault] = Watched(target, asyncio.run(_polls(device, first_ms)))
    return watched


def sinks(url: str, client: redis.Redis, case: str, **options: Any) -> list[RemoteWriteSink]:
    stores = Stores(None, client, Settings(), case)
    checked = RemoteWriteOptions(url=url, labels={"case": case}, **options)
    return [RemoteWriteSink(stores, checked) for _ in range(2)]


def write_in_turns(made: list[RemoteWriteSink], watched: Watched) -> None:
    for number, sample in enumerate(watched.samples()):
        made[number % len(made)].write([sample])


def lines(watched: Watched) -> list[Line]:
    return rates.compute(watched.polls, RateQuery(INTERVAL, Identity.IF_INDEX)).lines


def growth(found: Sequence[Rate], values: dict[int, float]) -> float:
    """Return the growth of a window: that of the verdicts, and after a reset what is counted."""
    total = 0.0
    for rate in found:
        if rate.per_second is not None:
            total += rate.per_second * rate.seconds
        else:
            assert rate.verdict is Verdict.RESET
            total += values[rate.at_ms]
    return total


class Difference(NamedTuple):
    name: str
    row: str
    intervals: int
    at_ms: int
    expected: float
    actual: float


def differences(prometheus: Prometheus, watched: Watched, case: str) -> Iterator[Difference]:
    """Yield every window whose increase in PromQL differs by more than 1 % from the verdicts."""
    found = {_key(line.series): line for line in lines(watched)}
    values = _values(watched)
    compared = 0
    for name in sorted({name for name, _ in found}):
        for length in WINDOWS:
            match = f'{name}{{case="{case}",device="{watched.target.device}"}}'
            query = f"increase({match}[{length * INTERVAL // 1000}s])"
            for row, at_ms, actual in _increases(prometheus, query, watched, length):
                end = (at_ms - watched.polls[0][0]) // INTERVAL
                window = found[name, row].rates[end - length + 1 : end + 1]
                expected = growth(window, values[name, row])
                compared += 1
                if abs(actual - expected) > 0.01 * expected + 1e-6:
                    yield Difference(name, row, length, at_ms, expected, actual)
    assert compared == len(found) * sum(POLLS - length for length in WINDOWS)


def _increases(
    prometheus: Prometheus, query: str, watched: Watched, length: int
) -> Iterator[tuple[str, int, float]]:
    """Yield row, end and increase of all windows that lie within the polls."""
    first_ms, last_ms = watched.polls[length][0], watched.polls[-1][0]
    for series in prometheus.range(query, first_ms, last_ms, INTERVAL):
        for at_s, text in series["values"]:
            yield series["metric"].get("ifIndex", ""), round(at_s * 1000), float(text)


def _key(series: Series) -> tuple[str, str]:
    return series.name, dict(series.labels).get("ifIndex", "")


def _values(watched: Watched) -> dict[tuple[str, str], dict[int, float]]:
    """Return the values of each series by instant."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for at_ms, readings in watched.polls:
        for series, value in zip(readings.series.series, readings.values, strict=True):
            found.setdefault(_key(series), {})[at_ms] = value
    return found


def verdicts(watched: Watched) -> set[Verdict]:
    return {rate.verdict for line in lines(watched) for rate in line.rates}


def test_rates_are_right_over_wraps(
    prometheus: Prometheus, redis_client: redis.Redis, routers: dict[Fault, Watched]
) -> None:
    """Every window of every counter has the increase of the verdicts, though counters wrap."""
    watched = routers[Fault.NONE]
    assert Verdict.WRAP in verdicts(watched)
    write_in_turns(sinks(f"{prometheus.url}/api/v1/write", redis_client, "wraps"), watched)
    assert list(differences(prometheus, watched, "wraps")) == []


def test_rates_are_right_over_reboots(
    prometheus: Prometheus, redis_client: redis.Redis, routers: dict[Fault, Watched]
) -> None:
    """A window with a reboot has what was counted before and since, and no spike."""
    watched = routers[Fault.REBOOT]
    assert Verdict.RESET in verdicts(watched)
    write_in_turns(sinks(f"{prometheus.url}/api/v1/write", redis_client, "reboots"), watched)
    assert list(differences(prometheus, watched, "reboots")) == []


def test_raw_counters_lose_what_was_counted_before_a_wrap(
    prometheus: Prometheus, redis_client: redis.Redis, routers: dict[Fault, Watched]
) -> None:
    """Without corrections, as from a scraped exporter, every wrap is taken for a restart at 0."""
    watched = routers[Fault.NONE]
    made = sinks(f"{prometheus.url}/api/v1/write", redis_client, "raw", correct_counters=False)
    write_in_turns(made, watched)
    lost = list(differences(prometheus, watched, "raw"))
    assert lost
    assert all(each.actual < each.expected for each in lost)


def test_version_2_tells_when_counters_started(
    redis_client: redis.Redis, routers: dict[Fault, Watched]
) -> None:
    """A start changes with a reboot only, whichever sink sends it, and lies after the reboot."""
    watched = routers[Fault.REBOOT]
    with receiving() as receiver:
        write_in_turns(sinks(receiver.url, redis_client, "starts", protocol="2.0"), watched)
    uptimes = {each.at_ms: each.value for each in receiver.samples if each.name == "sysUpTime"}
    every = [each for each in receiver.samples if each.name == "ifHCInOctets"]
    busiest = max(every, key=lambda each: each.value).labels
    octets = [each for each in every if each.labels == busiest]
    claimed = [each for each in octets if each.start_ms]
    assert len(claimed) == POLLS - 1  # all but the first, which has none to compare with
    booted_ms = {each.at_ms - round(uptimes[each.at_ms] * 10) for each in claimed}
    assert {each.start_ms for each in claimed} == booted_ms
    assert len(booted_ms) == 3
