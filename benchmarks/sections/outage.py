"""A site of a fleet goes dark and comes back: what does that cost, and does anybody else notice?

Real beat, worker, server and SNMP; the simulator cuts the uplink and mends it. Everything is read from the ledger
and from the kernel's accounts afterwards, so that looking costs nothing while it lasts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import cpu, ledger, progress, quantile, two_sites
from benchmarks.ledger import Poll
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Process, Stage
from benchmarks.two_sites import FAR, NEAR, Pace
from poller import errors
from poller.db.inventory import inventory_feed
from poller.db.record import event_rows
from poller.domain.record.event_kinds import EventFilter, Kind
from poller.settings import Settings, policies
from poller.sim.sim_process import Running, simulated
from poller.state.cluster import overview_reader, site_windows

#: What counts as unchanged: half of this is a tick.
UNCHANGED_MS = 250
#: A second may have so many times the usual polls: seconds differ, as the phases are drawn by lot.
SPREAD = 3.0
#: A canary may be asked so often that its own breaker opens.
SOME = 5
PATIENCE_INTERVALS, PATIENCE_S = 4, 120


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    far: int  # of them, those that go dark
    pace: Pace
    before_s: float
    dark_s: float  # after the site was noticed to be dark
    after_s: float
    probe_s: float  # how often canaries ask


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    began_ms: int
    ended_ms: int
    cpu_s: Mapping[str, float]
    others_s: float

    @property
    def minutes(self) -> float:
        return (self.ended_ms - self.began_ms) / 60_000


class Watch:
    """Measures phases, one after the other, without a gap."""

    def __init__(self, processes: Mapping[str, Process]) -> None:
        self.phases: list[Phase] = []
        self._processes = processes
        self._mark = self._now()

    def end(self, name: str) -> Phase:
        """What went by since the last one ended is the phase of this name."""
        before, now = self._mark, self._now()
        spent = {role: now[1][role] - before[1][role] for role in self._processes}
        phase = Phase(name, before[0], now[0], spent, now[2] - before[2] - sum(spent.values()))
        self.phases.append(phase)
        self._mark = now
        return phase

    def _now(self) -> tuple[int, dict[str, float], float]:
        used = {role: process.cpu_s for role, process in self._processes.items()}
        return time.time_ns() // 1_000_000, used, cpu.machine_s()


def run(size: Size, stage: Stage) -> Findings:
    os.environ.setdefault("POLLER_SITE_PROBE_S", str(size.probe_s))
    fleet = two_sites.devices(size.devices, size.far)
    with simulated(fleet) as simulator:
        two_sites.store(stage.services, fleet, simulator.snmp, size.pace)
        processes = _start(size, stage)
        phases = _phases(size, stage, simulator, processes)
        for role in ("beat", "worker"):
            stage.stop(processes[role])
    polls = ledger.polls(stage.services.engine, 0)
    figures = [
        *(
            figure
            for phase in phases
            for figure in _costs(phase, polls, _canaries(stage.services.settings))
        ),
        *_healthy(phases, polls),
        *_outage(size, phases, polls),
        *_return(size, phases, polls),
        *_told(stage, phases, size),
        *_check(stage),
    ]
    every = f"{size.devices:,} devices at {size.pace.interval_s:g} s, {size.far:,} of them dark"
    return Findings(
        figures, notes=[f"{every}; canaries ask every {stage.services.settings.site_probe_s:g} s"]
    )


def _start(size: Size, stage: Stage) -> dict[str, Process]:
    """Everything runs, every device was polled, and nobody is late: the first poll of a device is the dearest."""
    celery = ["-m", "celery", "-A", "poller", "--quiet"]
    beat = stage.start("beat", [*celery, "beat"])
    worker = stage.start("worker", [*celery, "worker", "-n", "worker@%h"])
    _until_answered(size, stage, 0, (FAR, NEAR), "polling everybody once")
    _until("catching up", 1, lambda: not _overdue(stage), PATIENCE_S)
    progress.wait("settling", size.pace.interval_s / 4)
    return {"beat": beat, "worker": worker, "server": stage.server}


def _overdue(stage: Stage) -> int:
    return overview_reader.read(stage.services.redis, stage.services.keys).overdue


def _phases(
    size: Size, stage: Stage, simulator: Running, processes: Mapping[str, Process]
) -> list[Phase]:
    watch = Watch(processes)
    progress.wait("before", size.before_s)
    watch.end("before")
    simulator.darken(FAR)
    what = "dark, and nobody knows it yet"
    _until(
        what,
        1,
        lambda: len(site_windows.dark(stage.services.redis, stage.services.keys)),
        PATIENCE_S,
    )
    progress.wait(
        "what was asked before times out, and its retries",
        _last_s(size.pace, stage.services.settings),
    )
    watch.end("opening")
    progress.wait("dark", size.dark_s)
    dark = watch.end("dark")
    simulator.darken()
    _until_answered(size, stage, dark.ended_ms, (FAR,), "coming back")
    watch.end("recovering")
    progress.wait("after", size.after_s)
    watch.end("after")
    return watch.phases


def _last_s(pace: Pace, settings: Settings) -> float:
    """How long a poll that finds nobody may go on, with all its tries; these end by half of the interval."""
    waits_s = (
        sum(
            policies.retry_limits(settings).longest_wait_ms(attempt)
            for attempt in range(settings.retry_tries)
        )
        / 1000
    )
    return max(
        pace.silence_s,
        min(pace.interval_s / 2, waits_s + pace.silence_s * (1 + settings.retry_tries)),
    )


def _until_answered(
    size: Size, stage: Stage, since_ms: int, sites: Sequence[str], what: str
) -> None:
    total = size.far if sites == (FAR,) else size.devices
    within_s = PATIENCE_S + PATIENCE_INTERVALS * size.pace.interval_s
    engine = stage.services.engine
    _until(
        what,
        total,
        lambda: sum(ledger.answered(engine, site, since_ms) for site in sites),
        within_s,
    )


def _until(what: str, total: float, done: Callable[[], float], within_s: float) -> None:
    if not progress.follow(what, total, done, within_s, every_s=0.5):
        raise errors.StoreUnavailable(
            f"{what}: not within {within_s:g} s", f"{done():,} of {total:,}"
        )


def _canaries(settings: Settings) -> float:
    """The most time-outs a minute that those who ask for a dark site may have, with their retries."""
    return settings.site_canaries * (1 + settings.retry_tries) * 60 / settings.site_probe_s


def _costs(phase: Phase, polls: Sequence[Poll], canaries: float) -> Iterator[Figure]:
    """Of one phase: what the far site cost in time-outs and polls, and everybody in CPU, per minute."""
    far = [poll for poll in polls if poll.site == FAR]
    lost = sum(poll.time_outs for poll in ledger.ended(far, phase.began_ms, phase.ended_ms))
    asked = len(ledger.started(far, phase.began_ms, phase.ended_ms))
    name, below = phase.name, canaries + 1 if phase.name == "dark" else None
    yield Figure(f"{name}_s", f"{name}: how long", phase.minutes * 60, "s")
    yield Figure(
        f"{name}_timeouts", f"{name}: time-outs", lost / phase.minutes, "/min", below=below
    )
    yield Figure(f"{name}_polls", f"{name}: polls of the site", asked / phase.minutes, "/min")
    for role, spent in phase.cpu_s.items():
        yield Figure(f"{name}_{role}_cpu", f"{name}: CPU of {role}", spent / phase.minutes, "s/min")
    yield Figure(
        f"{name}_others_cpu",
        f"{name}: CPU of everything else",
        phase.others_s / phase.minutes,
        "s/min",
    )


def _healthy(phases: Sequence[Phase], polls: Sequence[Poll]) -> Iterator[Figure]:
    """How late those were whose uplink is fine."""
    near = [poll for poll in polls if poll.site == NEAR]
    usual = 0
    for phase in phases:
        late = ledger.late(ledger.started(near, phase.began_ms, phase.ended_ms))
        p99 = quantile.of(late, 0.99)
        usual = usual or p99
        below = None if phase is phases[0] else usual + UNCHANGED_MS
        text = f"healthy, {phase.name}: lateness"
        yield Figure(f"{phase.name}_late_p50_ms", f"{text}, median", quantile.of(late, 0.5), "ms")
        yield Figure(f"{phase.name}_late_p99_ms", f"{text}, 99 %", p99, "ms", below=below)
    lost = sum(
        poll.time_outs for poll in ledger.ended(near, phases[0].began_ms, phases[-1].ended_ms)
    )
    yield Figure("healthy_timeouts", "healthy: time-outs", lost, "polls", below=1)


def _outage(size: Size, phases: Sequence[Phase], polls: Sequence[Poll]) -> Iterator[Figure]:
    """What all of it cost in time-outs, against a poller that just goes on."""
    _, opening, dark, _, _ = phases
    far = [poll for poll in polls if poll.site == FAR]
    lost = sum(poll.time_outs for poll in ledger.ended(far, opening.began_ms, dark.ended_ms))
    blind = size.far * (dark.ended_ms - opening.began_ms) / 1000 / size.pace.interval_s
    yield Figure("outage_timeouts", "time-outs in the whole outage", lost, "polls", below=blind)
    yield Figure("blind_timeouts", "and if everybody had been asked all the time", blind, "polls")


def _return(size: Size, phases: Sequence[Phase], polls: Sequence[Poll]) -> Iterator[Figure]:
    """How soon everybody was polled well again, and how evenly."""
    before, _, dark, _, after = phases
    back_ms, usual = dark.ended_ms, size.far / size.pace.interval_s
    far = [poll for poll in polls if poll.site == FAR]
    good: dict[int, int] = {}
    for poll in sorted(far, key=lambda poll: poll.finished_ms):
        if poll.good and poll.started_ms >= back_ms:
            good.setdefault(poll.target, poll.finished_ms)
    calm = max(ledger.per_second(far, before.began_ms, before.ended_ms).values())
    busy = max(ledger.per_second(far, back_ms, after.ended_ms).values())
    yield Figure(
        "first_back_s",
        "from its return to the first good poll",
        (min(good.values()) - back_ms) / 1000,
        "s",
    )
    yield Figure(
        "all_back_s", f"to all {size.far:,} polled well", (max(good.values()) - back_ms) / 1000, "s"
    )
    yield Figure(
        "before_peak", "most polls of the site in a second, before", calm / usual, "x its mean"
    )
    yield Figure(
        "back_peak", "the same while it came back", busy / usual, "x its mean", below=SPREAD
    )


def _told(stage: Stage, phases: Sequence[Phase], size: Size) -> Iterator[Figure]:
    """One event each way, whatever the size of the site."""
    began_ms, back_ms = phases[1].began_ms, phases[2].ended_ms

    def told(kind: Kind) -> list[int]:
        return [
            e.at_ms
            for e in event_rows.recent(
                stage.services.engine, EventFilter((kind,), since_ms=began_ms), 100_000
            )
        ]

    opened, closed, down = map(told, (Kind.SITE_OPENED, Kind.SITE_RECOVERED, Kind.DEVICE_WENT_DOWN))
    yield Figure(
        "open_s", "until the site was known to be dark", (min(opened) - began_ms) / 1000, "s"
    )
    yield Figure("closed_s", "until it was known to be back", (max(closed) - back_ms) / 1000, "s")
    yield Figure("site_opened", "events: the site went dark", len(opened), "", below=2)
    yield Figure("site_recovered", "events: the site answers again", len(closed), "", below=2)
    yield Figure(
        "devices_down", "events: a device went down", len(down), "", below=max(SOME, size.far / 100)
    )


def _check(stage: Stage) -> Iterator[Figure]:
    with inventory_feed.all_specs(stage.services.engine) as stored:
        check = stage.services.board.check(spec.id for spec in stored.specs)
    yield Figure("lost", "targets lost", len(check.lost), "targets", below=1)
    yield Figure("doubled", "targets doubled", len(check.doubled), "targets", below=1)


SECTION = Section(
    asks="what does it cost when a whole site goes dark and comes back, and do the others notice?",
    sizes={
        "full": Size(
            5_000, 2_000, Pace(60, 1.5, 2, 10), before_s=60, dark_s=90, after_s=60, probe_s=30
        ),
        "small": Size(500, 200, Pace(6, 0.4, 1, 2), before_s=12, dark_s=20, after_s=6, probe_s=5),
        "tiny": Size(60, 25, Pace(4, 0.3, 0, 1), before_s=3, dark_s=4, after_s=1, probe_s=2),
    },
    run=run,
)
