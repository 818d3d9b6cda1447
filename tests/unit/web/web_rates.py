"""Devices with counters for the pages, as the database would return them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from poller import errors
from poller.db.inventory.targets import Target
from poller.db.record import stored_rates
from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.db.record.stored_readings import Stored
from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.scheduling.interval import Policy

MINUTE = 60_000
TARGET = Target(
    id=1,
    device="sw1",
    site="",
    name="snmp",
    collector="snmp",
    options={},
    credential="",
    requires={},
    interval_ms=MINUTE,
    timeout_ms=5_000,
    policy=Policy.FIXED,
    min_ms=None,
    max_ms=None,
    staleness=None,
    enabled=True,
    version=1,
)


def polls(
    minutes: int = 60,
    interfaces: int = 3,
    lost: Sequence[int] = (),
    restart: int = 0,
    name: str = "eth",
) -> list[Stored]:
    """One poll per minute up to now, without the `lost` ones. `restart`: the device restarted that
    many minutes ago; 0: it did not.
    """
    now = now_ms()
    stored = []
    for ago in range(minutes, -1, -1):
        if ago not in lost:
            readings = _readings(minutes - ago, interfaces, _uptime(minutes, ago, restart), name)
            stored.append(Stored(1, now - ago * MINUTE, readings))
    return stored


def _uptime(minutes: int, ago: int, restart: int) -> int:
    """sysUpTime in hundredths of a second."""
    if restart and ago <= restart:
        return (restart - ago) * 6_000 + 3_000
    return 10**8 + (minutes - ago) * 6_000


def _readings(minute: int, interfaces: int, uptime: int, name: str) -> ReadingSet:
    readings = [Reading("sysUpTime", uptime)]
    for index in range(1, interfaces + 1):
        labels = {
            "ifIndex": str(index),
            "ifName": f"{name}{index}",
            "ifAlias": f"<b>port {index}</b>",
        }
        octets = 6e7 * index * (minute + 4 * math.sin(minute / 6))
        readings.append(Reading("ifHighSpeed", 1000, labels))
        for metric in ("ifHCInOctets", "ifHCOutOctets"):
            readings.append(Reading(metric, octets, labels, Kind.COUNTER, 64))
        for metric in ("ifInOctets", "ifInErrors"):
            readings.append(Reading(metric, octets % 2**32, labels, Kind.COUNTER, 32))
    return ReadingSet.of(readings)


def query(
    stored: Sequence[Stored], targets: Sequence[str] = ()
) -> Callable[[str, RatesRequest], Sequence[TargetRates]]:
    """The query `rates` of a web application with one device, `sw1`. All targets read the same."""
    names = targets or ["snmp"]

    def rates(device: str, request: RatesRequest) -> Sequence[TargetRates]:
        if device != "sw1":
            raise errors.NotFound(f'no device named "{device}"')
        return of_targets(dict.fromkeys(names, stored), request)

    return rates


def of_targets(
    stored: Mapping[str, Sequence[Stored]], request: RatesRequest
) -> Sequence[TargetRates]:
    """The rates of targets by name."""
    targets = []
    stored_by_id = {}
    maximum = stored_rates.maximum_polls(request)
    for number, (name, polls_of_target) in enumerate(stored.items()):
        targets.append(replace(TARGET, id=number, name=name))
        stored_by_id[number] = polls_of_target[-maximum:]
    return stored_rates.from_stored(targets, stored_by_id, request)


def one_counter(name: str) -> list[Stored]:
    """Two polls of a single counter."""
    stored = []
    for ago in (1, 0):
        readings = ReadingSet.of([Reading(name, 100 - ago, {}, Kind.COUNTER, 32)])
        stored.append(Stored(1, now_ms() - ago * MINUTE, readings))
    return stored


def now_ms() -> int:
    return time.time_ns() // 1_000_000
