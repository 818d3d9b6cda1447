"""Polls for the measurement of sinks: if_mib of simulated devices, each with texts of its own."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import replace

from benchmarks import agents, if_mib
from poller import errors
from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Outcome
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, Labels, ReadingSet, SeriesSet
from poller.sim import fleet
from poller.sim.fleet import SimDevice
from poller.sim.sim_process import simulated
from poller.sinks.api import Sample

INTERVAL_MS = 60_000
#: The label whose text differs from device to device in every network.
_OWN_LABEL = "ifAlias"


class SinkPolls:
    """Polls of a fleet. Every call of `round` returns one poll of each target, a minute later."""

    def __init__(self, targets: int, first_ms: int) -> None:
        device = agents.devices(1)[0]
        readings = polled(device)
        self.samples = len(readings.values)
        self._at_ms = first_ms
        self._values = array("d", readings.values)
        self._counters = [
            column
            for column, series in enumerate(readings.series.series)
            if series.kind is Kind.COUNTER
        ]
        self._targets = [
            (_target(number), _own_shape(readings.series, number)) for number in range(targets)
        ]

    def round(self) -> Sequence[Sample]:
        self._at_ms += INTERVAL_MS
        for column in self._counters:
            self._values[column] += 1000.0 + column
        return [
            Sample(target, self._at_ms, ReadingSet(shape, self._values[:]))
            for target, shape in self._targets
        ]


def polled(device: SimDevice) -> ReadingSet:
    """Return the readings of one poll of a simulated device."""
    with simulated([device]) as ports:
        outcome = asyncio.run(_poll(device, ports.snmp))
    if outcome.readings is None:
        raise errors.StoreUnavailable("the simulated device gave no readings", outcome.message)
    return outcome.readings


async def _poll(device: SimDevice, port: int) -> Outcome:
    collector = SnmpCollector()
    options = collector.Options.model_validate({"port": port, "modules": if_mib.NAME})
    deadline = asyncio.get_running_loop().time() + 10
    credential = Community.from_text(fleet.COMMUNITY)
    poll = Poll(1, device.name, device.address, options, credential, deadline, {})
    report = await poll_runner.run_and_report(collector, poll)
    return report.outcome


def _target(number: int) -> PollTarget:
    return PollTarget(
        id=number,
        version=1,
        name="snmp",
        device_id=number,
        device=f"router-{number:05d}",
        address="127.0.0.1",
        site=f"site-{number % 50:02d}",
        collector="snmp",
        interval_ms=INTERVAL_MS,
        timeout_ms=5_000,
        tags=("core", "role:access"),
    )


def _own_shape(shape: SeriesSet, number: int) -> SeriesSet:
    """Return the shape with texts of one device. Series of one row still share their labels."""
    rows: dict[Labels, Labels] = {}
    for series in shape.series:
        if series.labels not in rows:
            rows[series.labels] = tuple(
                (name, f"{text} {number}" if name == _OWN_LABEL else text)
                for name, text in series.labels
            )
    return SeriesSet(tuple(replace(each, labels=rows[each.labels]) for each in shape.series))
