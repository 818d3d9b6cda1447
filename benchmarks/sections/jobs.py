"""Are many jobs dispatched on time beside polling, what does a run cost, and do polls notice?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from benchmarks import agents, cluster, job_package, ledger, progress, quantile
from benchmarks.agents import PollRequest
from benchmarks.cluster import Cluster
from benchmarks.job_package import TrivialJob
from benchmarks.roles import Meter, Used
from benchmarks.section import Figure, Findings, Grid, Row, Section
from benchmarks.stage import ROOT, Stage
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import job_runs, jobs
from poller.domain.jobs.job_queue import queue_of
from poller.domain.jobs.job_run import Status
from poller.sim.sim_process import simulated

DISPATCH_LATE_MS = 1000
#: The rise of the polls' lateness (99 %) that still counts as unchanged.
UNCHANGED_MS = 100
WORKERS = 2
PATIENCE_S = 120
#: Time for the leader's look at the list of jobs, which it takes every `job_tick_s`.
LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class Size:
    jobs: int  # in each of the two sets
    every_s: float
    devices: int
    interval_s: float
    measure_s: float  # of each of the three phases
    job_tick_s: float = 5.0

    @property
    def noticed_s(self) -> float:
        """The time until the leader has seen that jobs are paused or resumed."""
        return self.job_tick_s + LOOK_S


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job, in ms after the instant at which it was due."""

    dispatched_ms: int
    started_ms: int
    is_good: bool


@dataclass(frozen=True, slots=True)
class Phase:
    """A time of polling, with the jobs that were due in it."""

    name: str
    used: Used
    due: int  # plans
    runs: Sequence[Run]
    poll_late: Counter[int]

    @property
    def dispatch_late(self) -> Counter[int]:
        return Counter(max(0, run.dispatched_ms) for run in self.runs)

    @property
    def start_late(self) -> Counter[int]:
        return Counter(max(0, run.started_ms) for run in self.runs)


def run(size: Size, stage: Stage) -> Findings:
    spread = job_package.spread(size.jobs, size.every_s)
    together = job_package.together(size.jobs, size.every_s)
    package = stage.home / "package"
    job_package.write(package, [*spread, *together])

    os.environ["POLLER_JOB_TICK_S"] = str(size.job_tick_s)
    fleet = agents.devices(size.devices)
    with simulated(fleet) as simulator:
        request = PollRequest(size.interval_s, ("system",))
        agents.store(stage.services, fleet, simulator.snmp, request)
        path = os.pathsep.join((str(ROOT), str(package)))
        ours = cluster.start(stage, WORKERS, PYTHONPATH=path)
        _pause_when_announced(stage, size, [*spread, *together])
        ours.steady(size.devices, size.interval_s, rounds=3 * WORKERS - 2)

        measured: list[tuple[str, list[TrivialJob], Used]] = [("none", [], _measure(size, ours))]
        for name, chosen in (("spread", spread), ("together", together)):
            _resume(stage, size, chosen)
            measured.append((name, chosen, _measure(size, ours)))
            _pause(stage, size, chosen)
            _wait_until_idle(stage)
        ours.stop()

    phases = [_phase(stage, name, chosen, used) for name, chosen, used in measured]
    return Findings(list(_figures(phases)), notes=[_note(size)], grid=_grid(phases))


def _pause_when_announced(stage: Stage, size: Size, chosen: Sequence[TrivialJob]) -> None:
    """Wait until a worker has announced every job, then pause all: the first phase has none."""
    engine = stage.services.engine
    queue = queue_of(job_package.DISTRIBUTION)

    def announced() -> int:
        query = sa.select(sa.func.count()).select_from(jobs).where(jobs.c.queue == queue)
        with sql.single_read(engine) as conn:
            return int(conn.execute(query).scalar_one())

    cluster.until("announcing the jobs", len(chosen), announced, PATIENCE_S)
    _pause(stage, size, chosen)
    _wait_until_idle(stage)


def _pause(stage: Stage, size: Size, chosen: Sequence[TrivialJob]) -> None:
    _set_paused(stage, chosen, cluster.now_ms())
    progress.wait("the leader reads the list of jobs", size.noticed_s)


def _resume(stage: Stage, size: Size, chosen: Sequence[TrivialJob]) -> None:
    """Resume jobs, and wait until each had its first run: that one comes at once."""
    _set_paused(stage, chosen, None)
    progress.wait("the first plans", size.noticed_s + size.every_s)


def _set_paused(stage: Stage, chosen: Sequence[TrivialJob], paused_ms: int | None) -> None:
    """Pause or resume many jobs in one statement."""
    named = in_list(jobs.c.name, [job.name for job in chosen])
    with sql.writing(stage.services.engine) as conn:
        conn.execute(sa.update(jobs).where(named).values(paused_ms=paused_ms))


def _wait_until_idle(stage: Stage) -> None:
    def idle() -> int:
        query = sa.select(job_runs.c.id).where(job_runs.c.status == Status.RUNNING.value).limit(1)
        with sql.single_read(stage.services.engine) as conn:
            return conn.execute(query).first() is None

    cluster.until("ending the runs", 1, idle, PATIENCE_S)


def _measure(size: Size, ours: Cluster) -> Used:
    meter = Meter(ours.roles)
    progress.wait("measuring", size.measure_s)
    return meter.read()


def _phase(stage: Stage, name: str, chosen: Sequence[TrivialJob], used: Used) -> Phase:
    due = {job.name: set(job.due_ms(used.began_ms, used.ended_ms)) for job in chosen}
    delays_ms = {job.name: round(job.delay_s * 1000) for job in chosen}
    columns = ("job", "plan_ms", "dispatched_ms", "started_ms", "status")
    query = sa.select(*(job_runs.c[column] for column in columns))
    engine = stage.services.engine
    with sql.single_read(engine) as conn:
        rows = [row for row in conn.execute(query) if row.plan_ms in due.get(row.job, ())]

    runs = []
    for row in rows:
        due_ms = row.plan_ms + delays_ms[row.job]
        is_good = row.status == Status.SUCCESS.value
        runs.append(Run(row.dispatched_ms - due_ms, row.started_ms - due_ms, is_good))

    polls = ledger.started(ledger.polls(engine, 0), used.began_ms, used.ended_ms)
    return Phase(name, used, sum(map(len, due.values())), runs, ledger.late(polls))


def _figures(phases: Sequence[Phase]) -> Iterator[Figure]:
    none, *loaded = phases
    quiet_p99 = quantile.of(none.poll_late, 0.99)
    yield Figure("none_poll_late_p99_ms", "polls' lateness without jobs, 99 %", quiet_p99, "ms")
    for phase in loaded:
        yield from _punctual(phase)
        yield from _costs(phase, none)
        rise = quantile.of(phase.poll_late, 0.99) - quiet_p99
        text = f"{phase.name}: rise of the polls' lateness, 99 %"
        yield Figure(f"{phase.name}_poll_late_rise_ms", text, rise, "ms", below=UNCHANGED_MS)


def _punctual(phase: Phase) -> Iterator[Figure]:
    name = phase.name
    dispatch, start = phase.dispatch_late, phase.start_late
    p50, p99 = quantile.of(dispatch, 0.5), quantile.of(dispatch, 0.99)
    yield Figure(f"{name}_runs", f"{name}: runs", len(phase.runs), "runs")
    missing = phase.due - sum(run.is_good for run in phase.runs)
    yield Figure(f"{name}_missing", f"{name}: plans without success", missing, "plans", below=1)
    yield Figure(f"{name}_dispatch_p50_ms", f"{name}: due to dispatch, median", p50, "ms")
    text = f"{name}: due to dispatch, 99 %"
    yield Figure(f"{name}_dispatch_p99_ms", text, p99, "ms", below=DISPATCH_LATE_MS)
    start_p50, start_p99 = quantile.of(start, 0.5), quantile.of(start, 0.99)
    yield Figure(f"{name}_start_p50_ms", f"{name}: due to start, median", start_p50, "ms")
    yield Figure(f"{name}_start_p99_ms", f"{name}: due to start, 99 %", start_p99, "ms")


def _costs(phase: Phase, none: Phase) -> Iterator[Figure]:
    """The CPU of a run: what each role used more than without jobs. Polls cost the same in both."""
    for role, spent_s in phase.used.cpu_s.items():
        quiet_s = none.used.cpu_s[role] * phase.used.seconds / none.used.seconds
        run_ms = 1000 * (spent_s - quiet_s) / max(1, len(phase.runs))
        text = f"{phase.name}: CPU of {role}"
        yield Figure(f"{phase.name}_{role}_ms", text, run_ms, "ms/run")


def _grid(phases: Sequence[Phase]) -> Grid:
    """Polling with and without jobs, side by side."""
    rows: list[Row] = [
        ("polls", "", [sum(phase.poll_late.values()) for phase in phases]),
        ("lateness of polls, median", "ms", [quantile.of(p.poll_late, 0.5) for p in phases]),
        ("lateness of polls, 99 %", "ms", [quantile.of(p.poll_late, 0.99) for p in phases]),
        ("lateness of polls, most", "ms", [max(p.poll_late, default=0) for p in phases]),
        ("job runs", "", [len(phase.runs) for phase in phases]),
    ]
    for role in phases[0].used.cpu_s:
        shares = [100 * phase.used.cpu_s[role] / phase.used.seconds for phase in phases]
        rows.append((f"CPU of {role}", "% of a core", shares))
    others = [100 * phase.used.others_s / phase.used.seconds for phase in phases]
    rows.append(("CPU of all other processes", "% of a core", others))
    return Grid([phase.name for phase in phases], rows)


def _note(size: Size) -> str:
    return (
        f"{size.jobs:,} jobs at {size.every_s:g} s: none, spread over the {size.every_s:g} s, and "
        f"all due together; beside {size.devices:,} devices at {size.interval_s:g} s, {WORKERS} "
        f"workers, SQLite; {size.measure_s:g} s each"
    )


SECTION = Section(
    asks="are 1,000 jobs at one minute dispatched on time, and do polls notice?",
    sizes={
        "full": Size(jobs=1_000, every_s=60, devices=2_000, interval_s=20, measure_s=180),
        "small": Size(jobs=200, every_s=12, devices=400, interval_s=4, measure_s=24),
        "tiny": Size(jobs=10, every_s=1, devices=20, interval_s=1, measure_s=2, job_tick_s=0.5),
    },
    run=run,
)
