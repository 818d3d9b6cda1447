"""Simulated routers that are polled every 15 seconds of their own clock: one reboots, one wraps.

The same routers can be scraped by snmp_exporter, at the same instants of their clock.
"""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import NamedTuple, TypeVar

from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.rates import Poll
from poller.domain.metrics.reading import ReadingSet
from poller.sim import fleet
from poller.sim.clock import Clock
from poller.sim.fleet import Fault, SimDevice
from poller.sim.snmp.snmp_server import SnmpServer
from poller.sinks.api import Sample
from tests.unit.collectors.polls import polled

#: A Counter32 of a link of 1 Gbit/s fills in 34 s: a longer interval leaves its wraps in doubt.
INTERVAL = 15_000
POLLS = 40
#: The clock of the routers: at this instant some of their counters are about to wrap.
SIM_S = 1_794_980_000

T = TypeVar("T")


class StepClock(Clock):
    """A clock that a test sets."""

    seconds = 0.0

    def now(self) -> float:
        return self.seconds


class Watched(NamedTuple):
    """The polls of one router, an interval apart."""

    device: SimDevice
    target: PollTarget
    polls: list[Poll]

    def samples(self) -> list[Sample]:
        return [Sample(self.target, at_ms, readings) for at_ms, readings in self.polls]


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
        readings = asyncio.run(_polls(device))
        polls = [(first_ms + at * INTERVAL, each) for at, each in enumerate(readings)]
        watched[fault] = Watched(device, target, polls)
    return watched


def scraped_pages(watched: Watched, exporter: str, module: str) -> list[str]:
    """Return the pages of snmp_exporter for a router at the instants of its polls.

    Each sample has the instant of the poll as its timestamp, so that a Prometheus may scrape the
    pages faster than the router's clock runs.
    """

    async def scrape(port: int) -> str:
        target = f"{watched.device.address}:{port}"
        url = f"http://{exporter}/snmp?module={module}&target={target}"
        return await asyncio.to_thread(_page, url)

    pages = asyncio.run(_at_each_poll(watched.device, scrape))
    return [_at(page, at_ms) for page, (at_ms, _) in zip(pages, watched.polls, strict=True)]


async def _polls(device: SimDevice) -> list[ReadingSet]:
    collector = SnmpCollector()
    credential = Community(community=fleet.COMMUNITY)

    async def poll(port: int) -> ReadingSet:
        report = await polled(
            collector, device.address, credential, port=port, modules="system,if_mib"
        )
        assert report.outcome.readings is not None, report.outcome.message
        return report.outcome.readings

    return await _at_each_poll(device, poll)


async def _at_each_poll(device: SimDevice, act: Callable[[int], Awaitable[T]]) -> list[T]:
    """Return the results of `act` with the port of a router, at every step of its clock."""
    server = SnmpServer([device], clock=StepClock())
    port = server.open(0)
    found: list[T] = []
    try:
        for number in range(POLLS):
            StepClock.seconds = SIM_S + number * INTERVAL / 1000
            found.append(await act(port))
    finally:
        server.close()
    return found


def _page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def _at(page: str, at_ms: int) -> str:
    """Return the page with a timestamp at the end of every sample."""
    lines = page.splitlines()
    timed = [f"{line} {at_ms}" if line and line[0] != "#" else line for line in lines]
    return "\n".join(timed) + "\n"
