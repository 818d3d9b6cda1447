"""When are targets polled again after a third of the workers is killed? Are any lost or doubled?

Devices answer slowly here, so that the killed worker has polls in flight.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks import agents, cluster, ledger, progress
from benchmarks.agents import PollRequest
from benchmarks.ledger import Poll
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from poller.db.record import run_ledger
from poller.domain.failures import error_codes
from poller.sim.fleet import Fault, SimDevice
from poller.sim.sim_process import simulated

WORKERS = 3
GRACE_S = 2.0
#: The maximum wait, after which a target counts as not polled; and the time until a new worker has
#: polls in flight.
SETTLE_S, START_S = 2.0, 10.0


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    interval_s: float
    limit_s: float  # time limit of a poll
    margin_s: float  # margin of its lease
    batch: int  # small, so that each worker always has some
    trials: int


def run(size: Size, stage: Stage) -> Findings:
    os.environ.setdefault("POLLER_BATCH_SIZE", str(size.batch))
    os.environ.setdefault("POLLER_LEASE_MARGIN_S", str(size.margin_s))
    fleet = _devices(size.devices)
    with simulated(fleet) as simulator:
        request = PollRequest(size.interval_s, ("system",), longest_s=size.limit_s)
        agents.store(stage.services, fleet, simulator.snmp, request)
        ours = cluster.start(stage, WORKERS)
        ours.steady(size.devices, size.interval_s)
        lease_s = request.limit_s + stage.services.settings.lease_margin_s
        kills = [
            _kill(ours, lease_s + GRACE_S, last=number == size.trials)
            for number in range(1, size.trials + 1)
        ]
        ours.stop()
    polls = ledger.polls(stage.services.engine, 0)
    waited_s = _again(polls, kills)
    figures = [*_figures(waited_s, lease_s), *_whole(stage, polls, kills[0])]
    note = (
        f"{size.devices:,} devices at {size.interval_s:g} s that answer after a second, "
        f"{WORKERS} workers"
    )
    again = [(waited, number / len(waited_s)) for number, waited in enumerate(waited_s, 1)]
    series = {"again_s": again, "lease_s": [(lease_s, 1.0)]}
    return Findings(figures, notes=[f"{note}; the lease of a poll is {lease_s:g} s"], series=series)


def _devices(number: int) -> list[SimDevice]:
    """Return the devices; each answers after 0.4 to 1.2 s."""
    return [
        replace(device, fault=Fault.SLOW, slow_seconds=0.8) for device in agents.devices(number)
    ]


def _kill(ours: cluster.Cluster, wait_s: float, last: bool) -> int:
    """Kill a worker, start another one, and return the instant of the kill in ms."""
    victim = ours.workers.pop(0)
    killed_ms = cluster.now_ms()
    os.killpg(victim.pid, signal.SIGKILL)
    progress.wait(f"{victim.name} is killed; its leases run out", wait_s + SETTLE_S)
    if not last:
        ours.workers.append(cluster.start_worker(ours.stage, f"after-{victim.name}"))
        progress.wait("another one starts", START_S)
    return killed_ms


def _again(polls: Sequence[Poll], kills: Sequence[int]) -> list[float]:
    """Return the waits of the interrupted polls in seconds, sorted."""
    lost = [
        poll
        for poll in polls
        if poll.error == error_codes.LEASE_LOST and poll.finished_ms >= kills[0]
    ]
    return sorted(_waited_s(polls, poll, kills) for poll in lost)


def _figures(waited_s: Sequence[float], lease_s: float) -> list[Figure]:
    text, most = "from the kill until polled again", lease_s + GRACE_S
    return [
        Figure(
            "in_flight", "polls that died with their worker", len(waited_s), "polls", at_least=1
        ),
        Figure("again_min_s", f"{text}, shortest", min(waited_s, default=0), "s"),
        Figure(
            "again_max_s",
            f"{text}, longest",
            max(waited_s, default=0),
            "s",
            at_most=most,
        ),
    ]


def _waited_s(polls: Sequence[Poll], lost: Poll, kills: Sequence[int]) -> float:
    """Return the time from the kill to the start of the target's next successful poll."""
    killed_ms = max(at for at in kills if at <= lost.finished_ms)
    again = (
        p.started_ms
        for p in polls
        if p.target == lost.target and p.good and p.started_ms > killed_ms
    )
    return (min(again, default=cluster.now_ms()) - killed_ms) / 1000


def _whole(stage: Stage, polls: Sequence[Poll], since_ms: int) -> list[Figure]:
    all_targets = {poll.target for poll in polls}
    after = {poll.target for poll in polls if poll.good and poll.started_ms > since_ms}
    overlaps = run_ledger.overlaps(stage.services.engine, since_ms)
    return [
        Figure(
            "unpolled",
            "targets not polled after the kill",
            len(all_targets - after),
            "targets",
            below=1,
        ),
        Figure(
            "overlaps",
            "polls that started before the previous one ended",
            overlaps,
            "polls",
            below=1,
        ),
        *cluster.whole(stage),
    ]


SECTION = Section(
    asks="a third of the workers is killed: when are their targets polled again?",
    sizes={
        "full": Size(9_000, 30, limit_s=10, margin_s=15, batch=32, trials=3),
        "small": Size(800, 4, limit_s=2.5, margin_s=10, batch=16, trials=1),
        "tiny": Size(120, 2, limit_s=1.5, margin_s=10, batch=2, trials=1),
    },
    run=run,
)
