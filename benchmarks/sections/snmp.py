"""What does the SNMP collector alone cost (engine and mapping, in one process) on a real snmpd?

Every variant reads the same agent with the same module. Their values are compared before the
measurement.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from benchmarks import equal, exporter, if_mib, progress, snmpd
from benchmarks.section import Figure, Findings, Grid, Section
from benchmarks.stage import Stage
from poller import errors
from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Community
from poller.collectors.poll_runner import PollReport
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import ReadingSet
from poller.sim import fleet

GOAL_MS = 0.6
#: Polls until request sizes are learned and shapes are cached.
WARM_POLLS = 12
OURS = "gufo"
#: The variants and their options of the collector. "everything" caches no names.
WAYS: Mapping[str, Mapping[str, Any]] = {
    OURS: {},
    "gufo, everything": {"refresh": 0},
    "exact": {"engine": "exact"},
    "exact, everything": {"engine": "exact", "refresh": 0},
}


@dataclass(frozen=True, slots=True)
class Size:
    polls: int  # per turn
    turns: int  # the cheapest counts, because of other load on the machine


@dataclass(slots=True)
class Cost:
    cold_ms: float
    warm_ms: float
    cold_packets: int
    warm_packets: int
    samples: int


class Target:
    """One variant that polls the agent repeatedly."""

    def __init__(self, port: int, options: Mapping[str, Any]) -> None:
        self._collector = SnmpCollector()
        self._options = SnmpCollector.Options.model_validate(
            {"port": port, "modules": [if_mib.NAME], **options}
        )
        self._credential = Community.from_text(fleet.COMMUNITY)
        self.memory: dict[str, Any] = {}

    async def poll(self) -> PollReport:
        deadline = asyncio.get_running_loop().time() + 10
        poll = Poll(
            1, "agent", snmpd.ADDRESS, self._options, self._credential, deadline, self.memory
        )
        drained = await poll_runner.run_and_report(self._collector, poll)
        if drained.outcome.result is not Result.OK:
            raise errors.StoreConflict("a poll of a healthy agent failed", drained.outcome.message)
        return drained

    async def readings(self) -> ReadingSet:
        found = (await self.poll()).outcome.readings
        assert found is not None
        return found

    async def close(self) -> None:
        await self._collector.close()


def run(size: Size, stage: Stage) -> Findings:
    with snmpd.running(stage.home) as port, _exporter(stage.home, port) as other:
        costs = uvloop.run(_measure(size, port, other))
        theirs = other.packets(snmpd.ADDRESS) if other else None
    ours = costs[OURS]
    figures = [
        Figure(
            "warm_ms", "CPU of a repeat poll, collector alone", ours.warm_ms, "ms", at_most=GOAL_MS
        ),
        Figure("cold_ms", "CPU of a first poll", ours.cold_ms, "ms"),
        Figure(
            "everything_ratio",
            "reading everything / only numbers",
            _ratio(costs, "gufo, everything"),
            "x",
        ),
        Figure("exact_ratio", "exact / gufo", _ratio(costs, "exact"), "x"),
        Figure("packets", "requests of a repeat poll", ours.warm_packets, ""),
        Figure("exporter_packets", "requests of a scrape, snmp_exporter", theirs, ""),
        Figure("samples", "samples of a poll", ours.samples, ""),
    ]
    return Findings(figures, grid=_grid(costs), notes=list(_notes(other)))


@contextmanager
def _exporter(folder: Path, port: int) -> Iterator[exporter.Exporter | None]:
    if not exporter.installed():
        yield None
        return
    with exporter.running(folder, port) as running:
        yield running


async def _measure(size: Size, port: int, other: exporter.Exporter | None) -> dict[str, Cost]:
    targets = {name: Target(port, options) for name, options in WAYS.items()}
    for name, target in targets.items():
        await _verify(name, target, targets[OURS], other)
    gc.collect()
    gc.freeze()  # as in a worker
    costs = {}
    with progress.shown("measuring", len(targets)) as show:
        for number, (name, target) in enumerate(targets.items()):
            costs[name] = await _cost(target, size)
            show(number)
    for target in targets.values():
        await target.close()
    return costs


async def _verify(name: str, target: Target, ours: Target, other: exporter.Exporter | None) -> None:
    """Check that first polls and shortcut polls return the values of another variant."""
    for _ in range(WARM_POLLS):
        before, found, after = await ours.readings(), await target.readings(), await ours.readings()
        values = {sample: value for sample, (value, _) in equal.samples(found).items()}
        equal.same_values(name, values, before, after)
    if other is not None and target is ours:
        before = await ours.readings()
        scraped, _ = other.scrape(snmpd.ADDRESS)
        equal.same_values("the exporter", scraped, before, await ours.readings())


async def _cost(target: Target, size: Size) -> Cost:
    warm = [await _turn(target, size.polls, forget=False) for _ in range(size.turns)]
    last = await target.poll()
    cold = [await _turn(target, max(1, size.polls // 4), forget=True) for _ in range(size.turns)]
    target.memory.clear()
    first = await target.poll()
    assert first.traffic is not None
    assert last.traffic is not None
    assert first.outcome.readings is not None
    return Cost(
        min(cold),
        min(warm),
        first.traffic.sent,
        last.traffic.sent,
        len(first.outcome.readings.values),
    )


async def _turn(target: Target, polls: int, forget: bool) -> float:
    """Return the CPU time of a poll in ms."""
    began = time.process_time()
    for _ in range(polls):
        if forget:
            target.memory.clear()
        await target.poll()
    return (time.process_time() - began) / polls * 1000


def _ratio(costs: Mapping[str, Cost], other: str) -> float:
    return costs[other].warm_ms / costs[OURS].warm_ms


def _grid(costs: Mapping[str, Cost]) -> Grid:
    every = list(costs.values())
    return Grid(
        list(costs),
        [
            ("CPU of a repeat poll", "ms", [cost.warm_ms for cost in every]),
            ("CPU of a first poll", "ms", [cost.cold_ms for cost in every]),
            ("requests of a repeat poll", "", [cost.warm_packets for cost in every]),
            ("requests of a first poll", "", [cost.cold_packets for cost in every]),
            ("samples of a poll", "", [cost.samples for cost in every]),
        ],
    )


def _notes(other: exporter.Exporter | None) -> Iterator[str]:
    yield "of one process with the collector and nothing else; the least of several turns"
    if other is None:
        yield f"snmp_exporter: not compared, as it is not installed ({exporter.HINT})"


SECTION = Section(
    asks="what does the SNMP collector alone cost, on a real snmpd?",
    sizes={"full": Size(200, 10), "small": Size(60, 5), "tiny": Size(5, 1)},
    run=run,
)
