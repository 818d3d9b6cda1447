"""Does one silent device in each batch delay the others?

The same fleet is measured in turns with and without silent devices, so that other load on the
machine affects both. Breakers stay closed, because they would exclude the silent devices.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from benchmarks import agents, cluster, ledger, progress, quantile
from benchmarks.agents import PollRequest
from benchmarks.ledger import Poll
from benchmarks.section import Figure, Findings, Grid, Row, Section
from benchmarks.seen import Seen
from benchmarks.stage import Stage
from poller.sim.fleet import SimDevice
from poller.sim.sim_process import Running, simulated

HOLE = "hole"
ONE_IN = 64
GOAL = 1.1
#: A breaker threshold that is never reached.
SHUT = {
    "POLLER_BREAKER_FAILURES": "1000",
    "POLLER_SITE_LEAST": "100000",
    "POLLER_DEADLETTER_AFTER_S": "604800",
}

Turns = list[tuple[int, int]]  # start and end in ms of the wall clock


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    interval_s: float
    turn_s: float
    turns: int  # of each kind


def run(size: Size, stage: Stage) -> Findings:
    os.environ.update(SHUT)
    fleet, request = _devices(size.devices), PollRequest(size.interval_s)
    with simulated(fleet) as simulator:
        agents.store(stage.services, fleet, simulator.snmp, request)
        ours = cluster.start(stage)
        ours.steady(size.devices, size.interval_s)
        with Seen(stage.services.engine) as seen:
            without, within = _take_turns(size, simulator)
        ours.stop()
    polls = ledger.polls(stage.services.engine, 0)
    healthy = [poll for poll in polls if poll.site != HOLE]
    figures, grid = _compare(_in(healthy, without), _in(healthy, within), seen)
    swallowed = [poll for poll in _in(polls, within) if poll.site == HOLE]
    figures += [
        Figure(
            "swallowed",
            "polls without an answer",
            sum(poll.timed_out for poll in swallowed),
            "",
            at_least=1,
        ),
        Figure(
            "healthy_bad",
            "polls of the others that failed",
            sum(not poll.good for poll in healthy),
            "",
            below=1,
        ),
        *cluster.whole(stage),
    ]
    note = (
        f"{size.devices:,} devices at {size.interval_s:g} s, "
        f"one in {ONE_IN} silent in turns of {size.turn_s:g} s"
    )
    return Findings(figures, grid=grid, notes=[note])


def _devices(number: int) -> list[SimDevice]:
    """Return the devices; every 64th is at the site whose uplink is cut."""
    return [
        replace(d, site=HOLE if d.index % ONE_IN == 0 else "near") for d in agents.devices(number)
    ]


def _take_turns(size: Size, simulator: Running) -> tuple[Turns, Turns]:
    without, within = Turns(), Turns()
    for number in range(2 * size.turns):
        silent = number % 2 == 1
        simulator.darken(*([HOLE] if silent else []))
        progress.wait("waiting for earlier polls to end", min(2.0, size.turn_s / 4))
        began_ms = cluster.now_ms()
        progress.wait("with silent devices" if silent else "without", size.turn_s)
        (within if silent else without).append((began_ms, cluster.now_ms()))
    simulator.darken()
    return without, within


def _in(polls: Sequence[Poll], turns: Turns) -> list[Poll]:
    return [poll for begin, end in turns for poll in ledger.started(polls, begin, end)]


def _compare(
    without: Sequence[Poll], within: Sequence[Poll], seen: Seen
) -> tuple[list[Figure], Grid]:
    figures, rows = list[Figure](), list[Row]()
    for name, text, of in _MEASURES:
        before, after = (_p99(of(poll, seen) for poll in polls) for polls in (without, within))
        ratio = after / max(1, before)
        figures += [
            Figure(f"{name}_without_p99_ms", f"{text}, 99 %, none silent", before, "ms"),
            Figure(f"{name}_p99_ms", f"{text}, 99 %, one in {ONE_IN} silent", after, "ms"),
            Figure(f"{name}_ratio", f"{text}, ratio", ratio, "x", at_most=GOAL),
        ]
        rows.append((f"{text}, 99 %", "ms", [before, after, ratio]))
    rows.append(("polls", "", [len(without), len(within), None]))
    return figures, Grid(["none silent", f"one in {ONE_IN} silent", "ratio"], rows)


def _p99(values: Iterable[int | None]) -> int:
    return quantile.of(Counter(value for value in values if value is not None), 0.99)


def _collect(poll: Poll, _seen: Seen) -> int:
    return poll.collect_ms


def _late(poll: Poll, _seen: Seen) -> int:
    return max(0, poll.started_ms - poll.plan_ms)


def _stored(poll: Poll, seen: Seen) -> int | None:
    """Return the time from slot to storage; None for polls stored after the last query."""
    at_ms = seen.at_ms.get((poll.target, poll.finished_ms))
    return None if at_ms is None else at_ms - poll.plan_ms


_MEASURES: Sequence[tuple[str, str, Callable[[Poll, Seen], int | None]]] = (
    ("collect", "collecting", _collect),
    ("late", "lateness", _late),
    ("stored", "from slot to stored", _stored),
)


SECTION = Section(
    asks="does one silent device in each batch delay the others?",
    sizes={
        "full": Size(1_280, 5, turn_s=20, turns=4),
        "small": Size(384, 3, turn_s=4, turns=2),
        "tiny": Size(128, 2, turn_s=2, turns=1),
    },
    run=run,
)
