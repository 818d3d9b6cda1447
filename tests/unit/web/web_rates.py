"""Devices with counters, for the pages: what a database would have answered, made by the same code."""

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
    1, "sw1", "snmp", "snmp", {}, "", {}, MINUTE, 5_000, Policy.FIXED, None, None, None, True, 1
)


def polls(
    minutes: int = 60,
    interfaces: int = 3,
    lost: Sequence[int] = (),
    restart: int = 0,
    name: str = "eth",
) -> list[Stored]:
    """One a minute up to now; some are lost, and the device may have restarted so many minutes ago."""
    now = now_ms()
    return [
        Stored(1, now - ago * MINUTE, _poll(minutes - ago, interfaces, ago, restart, name))
        for ago in range(minutes, -1, -1)
        if ago not in lost
    ]


def _poll(minute: int, interfaces: int, ago: int, restart: int, name: str) -> ReadingSet:
    up = (restart - ago) * 6_000 + 3_000 if restart and ago <= restart else 10**8 + minute * 6_000
    found = [Reading("sysUpTime", up)]
    for index in range(1, interfaces + 1):
        labels = {
            "ifIndex": str(index),
            "ifName": f"{name}{index}",
            "ifAlias": f"<b>port {index}</b>",
        }
        moved = 6e7 * index * (minute + 4 * math.sin(minute / 6))
        found += [Reading("ifHighSpeed", 1000, labels)]
        found += [
            Reading(name, moved, labels, Kind.COUNTER, 64)
            for name in ("ifHCInOctets", "ifHCOutOctets")
        ]
        found += [
            Reading(name, moved % 2**32, labels, Kind.COUNTER, 32)
            for name in ("ifInOctets", "ifInErrors")
        ]
    return ReadingSet.of(found)


def answering(
    stored: Sequence[Stored], targets: Sequence[str] = ()
) -> Callable[[str, RatesRequest], Sequence[TargetRates]]:
    """The source of a web application that knows one device, `sw1`; of several targets each reads the same."""

    def of(device: str, request: RatesRequest) -> Sequence[TargetRates]:
        if device != "sw1":
            raise errors.NotFound(f'no device named "{device}"')
        return of_targets(dict.fromkeys(targets or ["snmp"], stored), request)

    return of


def of_targets(
    stored: Mapping[str, Sequence[Stored]], request: RatesRequest
) -> Sequence[TargetRates]:
    """Of targets of these names, as a database would have answered."""
    targets = [replace(TARGET, id=number, name=name) for number, name in enumerate(stored)]
    return stored_rates.from_stored(
        targets,
        {t.id: stored[t.name][-stored_rates.maximum_polls(request) :] for t in targets},
        request,
    )


def counting(name: str) -> list[Stored]:
    """Two polls of a single counter."""
    return [
        Stored(
            1,
            now_ms() - ago * MINUTE,
            ReadingSet.of([Reading(name, 100 - ago, {}, Kind.COUNTER, 32)]),
        )
        for ago in (1, 0)
    ]


def now_ms() -> int:
    return time.time_ns() // 1_000_000
