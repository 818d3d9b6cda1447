"""A fleet polled by the whole platform for a while: resources, lateness and missed slots."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks import agents, cluster, ledger, progress, quantile
from benchmarks.agents import PollRequest
from benchmarks.ledger import Poll
from benchmarks.roles import Meter, Used
from benchmarks.section import Figure
from benchmarks.stage import Stage
from poller.db.record import run_ledger
from poller.sim.sim_process import simulated

LOOK_EVERY_S = 10.0
_BIN_MS = 10_000

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Watched:
    used: Used
    polls: Sequence[Poll]  # that ended during the measurement
    missed: int  # slots without a poll
    memory: Mapping[str, Sequence[Point]]  # by role: seconds, MB
    kept: Sequence[Figure]  # checks for lost and doubled polls

    @property
    def late(self) -> Counter[int]:
        return ledger.late(self.polls)

    @property
    def late_p99(self) -> list[Point]:
        """Return the 99th percentile of lateness in ms for every ten seconds."""
        bins = defaultdict[int, list[Poll]](list)
        for poll in self.polls:
            bins[(poll.started_ms - self.used.began_ms) // _BIN_MS].append(poll)
        return [
            (n * _BIN_MS / 1000, quantile.of(ledger.late(bins[n]), 0.99))
            for n in sorted(bins)
            if n >= 0
        ]

    @property
    def role_ms(self) -> dict[str, float]:
        """Return the CPU of each role per poll, without the simulated agents."""
        return {
            role: spent / max(1, len(self.polls)) * 1000 for role, spent in self.used.cpu_s.items()
        }

    @property
    def poll_ms(self) -> float:
        return sum(spent for role, spent in self.role_ms.items() if role != "agents")


@dataclass(frozen=True, slots=True)
class Trial:
    """A short look before the measurement: the fleet must keep its slots."""

    seconds: float
    late_ms: float  # of 99 % of the polls
    catch_up_s: float  # until no poll is late, after the first polls


class TooMany(Exception):
    """A fleet that the machine does not carry."""


def watch(
    stage: Stage,
    devices: int,
    request: PollRequest,
    workers: int,
    seconds: float,
    model: str = agents.MODEL,
    trial: Trial | None = None,
) -> Watched:
    """Measure a fleet of one model for some seconds. Raises TooMany if it fails its trial."""
    fleet = agents.devices(devices, model)
    with simulated(fleet) as simulator:
        agents.store(stage.services, fleet, simulator.snmp, request)
        ours = cluster.start(stage, workers)
        catch_up_s = trial.catch_up_s if trial else None
        ours.steady(devices, request.interval_s, 3 * workers - 2, catch_up_s)
        if trial is not None:
            _try(stage, trial)
        meter = Meter({**ours.roles, "agents": [simulator.pid]})
        memory = _looks(meter, seconds)
        used = meter.read()
        ours.stop()
    polls = ledger.polls(stage.services.engine, 0)
    missed = _missed(polls, used, devices, request.interval_s)
    kept = [*cluster.whole(stage), _overlaps(stage, used)]
    return Watched(used, ledger.ended(polls, used.began_ms, used.ended_ms), missed, memory, kept)


def _try(stage: Stage, trial: Trial) -> None:
    began_ms = cluster.now_ms()
    progress.wait("trial", trial.seconds)
    tried = ledger.started(ledger.polls(stage.services.engine, began_ms), began_ms, 2**62)
    if not tried or quantile.of(ledger.late(tried), 0.99) >= trial.late_ms:
        raise TooMany


def _looks(meter: Meter, seconds: float) -> dict[str, list[Point]]:
    """Record the memory of each role until the end of the measurement."""
    points: dict[str, list[Point]] = {}
    passed = 0.0
    with progress.shown("measuring", seconds) as show:
        while passed < seconds:
            time.sleep(min(LOOK_EVERY_S, seconds - passed))
            used = meter.read()
            passed = used.seconds
            for role, megabytes in used.ended_mb.items():
                points.setdefault(role, [(0.0, used.began_mb[role])]).append((passed, megabytes))
            show(passed)
    return points


def _missed(polls: Sequence[Poll], used: Used, devices: int, interval_s: float) -> int:
    """Count slots without a poll, over a whole number of intervals and with time for the last."""
    interval_ms = round(interval_s * 1000)
    rounds = max(1, (used.ended_ms - used.began_ms) // interval_ms - 1)
    end_ms = used.began_ms + rounds * interval_ms
    return devices * rounds - sum(used.began_ms <= poll.plan_ms < end_ms for poll in polls)


def _overlaps(stage: Stage, used: Used) -> Figure:
    found = run_ledger.overlaps(stage.services.engine, used.began_ms)
    return Figure(
        "overlaps", "polls that began before the one before had ended", found, "polls", below=1
    )
