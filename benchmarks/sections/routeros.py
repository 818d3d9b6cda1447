"""What does a poll of a large router cost in time, CPU and sentences, compared with mktxp?

Both read the same simulated router and all data of mktxp in every poll. Their values are compared
before the measurement.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvloop

from benchmarks import cpu, mktxp, progress, same_numbers
from benchmarks.section import Figure, Findings, Grid, Section
from benchmarks.stage import Stage
from poller import errors
from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.routeros.families import DEFAULT, FAMILIES
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import ReadingSet
from poller.sim import clock, fleet
from poller.sim.sim_process import Running, simulated

NOON = 1_790_000_000.0
LISTS = ("blocked", "allowed")
WARM_POLLS = 3
#: The goal, as a share of a scrape of mktxp.
CPU_SHARE, COMMAND_SHARE = 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Size:
    interfaces: int
    polls: int
    scrapes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one poll or one scrape."""

    ms: float
    cpu_ms: float
    commands: float
    sentences: float  # sent by the router
    samples: int


class Lab:
    """The simulated router and its counters."""

    def __init__(self, sim: Running, address: str) -> None:
        self.address, self.port = address, sim.routeros
        self._sim = sim

    def seen(self) -> tuple[int, int]:
        """Return the number of commands received and sentences sent so far."""
        visits = self._sim.visits(self.address)
        return sum(visits.commands.values()), visits.said


class Target:
    """A target as in a worker: with a memory and a persistent session."""

    def __init__(self, lab: Lab, **options: Any) -> None:
        self._collector = RouterOsCollector()
        self._options = RouterOsCollector.Options.model_validate(
            {"port": lab.port, "tls": False, **options}
        )
        self._login = Login.model_validate({"username": fleet.USERNAME, "password": fleet.PASSWORD})
        self._address = lab.address
        self._memory: dict[str, Any] = {}
        self._sessions = Sessions()

    async def poll(self) -> ReadingSet:
        deadline = asyncio.get_running_loop().time() + 30
        poll = Poll(
            1,
            "lab",
            self._address,
            self._options,
            self._login,
            deadline,
            self._memory,
            self._sessions,
        )
        outcome = await poll_runner.run_poll(self._collector, poll)
        if outcome.result is not Result.OK or outcome.readings is None:
            raise errors.StoreConflict("a poll of a healthy router failed", outcome.message)
        return outcome.readings

    async def close(self) -> None:
        await self._sessions.close()


def run(size: Size, stage: Stage) -> Findings:
    with _laboratory(size) as lab:
        everything = dict.fromkeys(FAMILIES, 0)
        ours, found = uvloop.run(
            _ours(lab, size, families="all", every=everything, address_lists=LISTS)
        )
        usual, _ = uvloop.run(_ours(lab, size, families=DEFAULT))
        theirs, verdict = _theirs(stage, lab, size, found) if mktxp.installed() else (None, None)
    return Findings(
        _figures(ours, theirs),
        notes=list(_notes(size, verdict)),
        grid=_grid(ours, usual, theirs),
    )


@contextmanager
def _laboratory(size: Size) -> Iterator[Lab]:
    device = fleet.laboratory(size.interfaces)
    with simulated([device], clock=clock.frozen(NOON)) as sim:
        yield Lab(sim, device.address)


async def _ours(lab: Lab, size: Size, **options: Any) -> tuple[Cost, ReadingSet]:
    target = Target(lab, **options)
    for _ in range(WARM_POLLS):
        found = await target.poll()
    gc.collect()
    before, began, used = lab.seen(), time.perf_counter(), time.process_time()
    with progress.shown("polling", size.polls) as show:
        for number in range(size.polls):
            await target.poll()
            show(number)
    took, used = time.perf_counter() - began, time.process_time() - used
    await target.close()
    return _cost(size.polls, took, used, before, lab.seen(), len(found.values)), found


def _theirs(
    stage: Stage, lab: Lab, size: Size, ours: ReadingSet
) -> tuple[Cost, same_numbers.Verdict]:
    with mktxp.running(stage.home, lab.address, lab.port, LISTS) as exporter:
        found = exporter.scrape()
        verdict = same_numbers.must_be_equal(found, ours)
        before, began, used = lab.seen(), time.perf_counter(), cpu.tree_s(exporter.pid)
        with progress.shown("scraping mktxp", size.scrapes) as show:
            for number in range(size.scrapes):
                exporter.scrape()
                show(number)
        took, used = time.perf_counter() - began, cpu.tree_s(exporter.pid) - used
    return _cost(size.scrapes, took, used, before, lab.seen(), len(found)), verdict


def _cost(
    turns: int,
    took: float,
    used: float,
    before: tuple[int, int],
    after: tuple[int, int],
    samples: int,
) -> Cost:
    commands, sentences = (
        (late - early) / turns for early, late in zip(before, after, strict=True)
    )
    return Cost(took / turns * 1000, used / turns * 1000, commands, sentences, samples)


def _figures(ours: Cost, theirs: Cost | None) -> list[Figure]:
    def share(name: str) -> float | None:
        return getattr(ours, name) / getattr(theirs, name) if theirs else None

    return [
        Figure("cpu_ms", "CPU of a poll of everything", ours.cpu_ms, "ms"),
        Figure("ms", "time of a poll of everything", ours.ms, "ms"),
        Figure("commands", "commands of a poll of everything", ours.commands, ""),
        Figure(
            "cpu_share",
            "CPU, of what a scrape of mktxp takes",
            share("cpu_ms"),
            "x",
            at_most=CPU_SHARE,
        ),
        Figure(
            "command_share",
            "commands, of those of mktxp",
            share("commands"),
            "x",
            at_most=COMMAND_SHARE,
        ),
    ]


def _grid(ours: Cost, usual: Cost, theirs: Cost | None) -> Grid:
    every = [ours, usual, *([theirs] if theirs else [])]
    return Grid(
        ["poller", "default families", *(["mktxp"] if theirs else [])],
        [
            ("time of a poll", "ms", [cost.ms for cost in every]),
            ("CPU of a poll", "ms", [cost.cpu_ms for cost in every]),
            ("commands", "", [cost.commands for cost in every]),
            ("sentences of the answers", "", [cost.sentences for cost in every]),
            ("samples", "", [cost.samples for cost in every]),
        ],
    )


def _notes(size: Size, verdict: same_numbers.Verdict | None) -> Iterator[str]:
    yield f"{size.interfaces} interfaces, all families in every poll; one process per candidate"
    if verdict is None:
        yield f"mktxp: not compared, as it is not installed ({mktxp.HINT})"
        return
    others = sum(verdict.explained.values())
    yield (
        f"{verdict.equal:,} samples of mktxp are equal to ours; "
        f"{others} differ as listed in docs/routeros.md"
    )
    yield "mktxp also writes its samples as text for Prometheus; poller passes numbers to its sinks"


SECTION = Section(
    asks="what does a poll of a large router cost, compared with mktxp?",
    sizes={"full": Size(300, 40, 3), "small": Size(300, 10, 1), "tiny": Size(40, 3, 1)},
    run=run,
)
