"""What does it cost when a site goes dark and comes back, and are other sites delayed?

Beat, worker, server and SNMP are real; the simulator cuts and restores the uplink. Results are read
afterwards from the ledger and the accounts of the kernel, at no cost during the run.
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

#: The difference in lateness that counts as unchanged; a tick is half as long.
UNCHANGED_MS = 250
#: The maximum polls in a second, relative to the mean: phases are random, so seconds differ.
SPREAD = 3.0
#: A site is known to be dark after a slice of ten seconds or two. With a shorter interval than this
#: three failures of a device are quicker, so more are needed there.
SHORT_INTERVAL_S = 10
#: Devices that may go down: the breaker of a canary can open.
SOME = 5
PATIENCE_INTERVALS, PATIENCE_S = 4, 120


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    far: int  # devices of the site that goes dark
    pace: Pace
    before_s: float
    dark_s: float  # after the site is known to be dark
    after_s: float
    probe_s: float  # interval of the canary polls


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
    """Measures consecutive phases without a gap."""

    def __init__(self, processes: Mapping[str, Process]) -> None:
        self.phases: list[Phase] = []
        self._processes = processes
        self._mark = self._now()

    def end(self, name: str) -> Phase:
        """End a phase; it began at the end of the previous phase."""
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
    if size.pace.interval_s < SHORT_INTERVAL_S:
        os.environ.setdefault("POLLER_BREAKER_FAILURES", "5")
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
        *_events(stage, phases, size),
        *_check(stage),
    ]
    every = f"{size.devices:,} devices at {size.pace.interval_s:g} s, {size.far:,} of them dark"
    return Findings(
        figures, notes=[f"{every}; canaries ask every {stage.services.settings.site_probe_s:g} s"]
    )


def _start(size: Size, stage: Stage) -> dict[str, Process]:
    """Start the platform and wait until every device was polled and no poll is late."""
    celery = ["-m", "celery", "-A", "poller", "--quiet"]
    beat = stage.start("beat", [*celery, "beat"])
    worker = stage.start("worker", [*celery, "worker", "-n", "worker@%h"])
    _until_answered(size, stage, 0, (FAR, NEAR), "polling every device once")
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
    what = "dark, and not yet noticed"
    _until(
        what,
        1,
        lambda: len(site_windows.dark(stage.services.redis, stage.services.keys)),
        PATIENCE_S,
    )
    progress.wait(
        "time-outs and retries of earlier polls",
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
    """Return the maximum duration of a poll without an answer, with all its retries."""
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
    """Return the maximum time-outs per minute of the canaries of a dark site, with retries."""
    return settings.site_canaries * (1 + settings.retry_tries) * 60 / settings.site_probe_s


def _costs(phase: Phase, polls: Sequence[Poll], canaries: float) -> Iterator[Figure]:
    """Return the costs of a phase per minute: time-outs and polls of the far site, CPU of all."""
    far = [poll for poll in polls if poll.site == FAR]
    lost = sum(poll.time_outs for poll in ledger.ended(far, phase.began_ms, phase.ended_ms))
    polls_started = len(ledger.started(far, phase.began_ms, phase.ended_ms))
    name, below = phase.name, canaries + 1 if phase.name == "dark" else None
    yield Figure(f"{name}_s", f"{name}: how long", phase.minutes * 60, "s")
    yield Figure(
        f"{name}_timeouts", f"{name}: time-outs", lost / phase.minutes, "/min", below=below
    )
    yield Figure(
        f"{name}_polls", f"{name}: polls of the site", polls_started / phase.minutes, "/min"
    )
    for role, spent in phase.cpu_s.items():
        yield Figure(f"{name}_{role}_cpu", f"{name}: CPU of {role}", spent / phase.minutes, "s/min")
    yield Figure(
        f"{name}_others_cpu",
        f"{name}: CPU of all other processes",
        phase.others_s / phase.minutes,
        "s/min",
    )


def _healthy(phases: Sequence[Phase], polls: Sequence[Poll]) -> Iterator[Figure]:
    """Return the lateness of the devices whose uplink works."""
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
    """Return the time-outs of the outage, against a poller that ignores it."""
    _, opening, dark, _, _ = phases
    far = [poll for poll in polls if poll.site == FAR]
    lost = sum(poll.time_outs for poll in ledger.ended(far, opening.began_ms, dark.ended_ms))
    blind = size.far * (dark.ended_ms - opening.began_ms) / 1000 / size.pace.interval_s
    yield Figure("outage_timeouts", "time-outs in the whole outage", lost, "polls", below=blind)
    yield Figure("blind_timeouts", "time-outs if every device had been polled", blind, "polls")


def _return(size: Size, phases: Sequence[Phase], polls: Sequence[Poll]) -> Iterator[Figure]:
    """Return how soon and how evenly all devices were polled successfully again."""
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
        "all_back_s",
        f"until all {size.far:,} were polled",
        (max(good.values()) - back_ms) / 1000,
        "s",
    )
    yield Figure(
        "before_peak", "most polls of the site in a second, before", calm / usual, "x its mean"
    )
    yield Figure(
        "back_peak",
        "most polls of the site in a second, on its return",
        busy / usual,
        "x its mean",
        below=SPREAD,
    )


def _events(stage: Stage, phases: Sequence[Phase], size: Size) -> Iterator[Figure]:
    """Count the events: one for the outage and one for the return, for a site of any size."""
    began_ms, back_ms = phases[1].began_ms, phases[2].ended_ms

    def instants(kind: Kind) -> list[int]:
        return [
            e.at_ms
            for e in event_rows.recent(
                stage.services.engine, EventFilter((kind,), since_ms=began_ms), 100_000
            )
        ]

    opened, closed, down = map(
        instants, (Kind.SITE_OPENED, Kind.SITE_RECOVERED, Kind.DEVICE_WENT_DOWN)
    )
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
    asks="what does it cost when a site goes dark and comes back, and are the others delayed?",
    sizes={
        "full": Size(
            5_000, 2_000, Pace(60, 1.5, 2, 10), before_s=60, dark_s=90, after_s=60, probe_s=30
        ),
        "small": Size(500, 200, Pace(6, 0.4, 1, 2), before_s=12, dark_s=20, after_s=6, probe_s=5),
        "tiny": Size(60, 25, Pace(4, 0.3, 0, 1), before_s=3, dark_s=4, after_s=1, probe_s=2),
    },
    run=run,
)
