"""A cluster that runs a job on a short cadence, faults at random, and the judgement of its ledger.

Tests and `python -m tests.chaos_jobs` share it.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from poller import errors
from poller.db import database_clock
from poller.db.jobs import job_history
from poller.domain.jobs.job_run import JobRun, Status
from tests.acceptance import steady_jobs
from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.steady_jobs import STEADY, Line

#: The time for a cluster to start and run its first plan, and to run all plans after the faults.
START_S = 60.0
SETTLE_S = 60.0
#: Pauses between two faults, until a dead process is replaced, and until a frozen one goes on.
BETWEEN_S = (3.0, 7.0)
REPLACED_S = (0.5, 3.0)
FROZEN_S = (5.0, 10.0)
STEP_S = 0.1


class SteadyCluster(Cluster):
    """A cluster whose workers have the jobs of `steady_jobs`."""

    def __init__(
        self,
        directory: Path,
        database_url: str = "",
        cadence_s: float = 5.0,
        length_s: float = 0.2,
        **settings: str,
    ) -> None:
        self.file = directory / "steady"
        self.cadence_ms = round(cadence_s * 1000)
        own = {
            steady_jobs.FILE_VARIABLE: str(self.file),
            steady_jobs.CADENCE_VARIABLE: f"{cadence_s:g}",
            steady_jobs.LENGTH_VARIABLE: f"{length_s:g}",
            "POLLER_WORKER_DRAIN_S": "1",
        }
        super().__init__(directory, database_url, **own, **settings)
        steady_jobs.install(directory / "plugins")
        self.valkey.start()

    def runs(self, job: str = STEADY) -> list[JobRun]:
        """Return all runs of a job, by plan."""
        found = job_history.runs(self.services.engine, job, limit=100_000)
        return sorted(found, key=lambda run: run.plan.plan_ms)

    def lines(self, word: str, job: str = STEADY) -> list[Line]:
        return [line for line in steady_jobs.lines(self.file, job) if line.word == word]

    def started(self) -> None:
        """Wait until a plan was run."""
        soon(
            lambda: any(run.status is Status.SUCCESS for run in self.runs()),
            START_S,
            "the first plan is run",
        )


@dataclass
class Watch:
    """What the ledger showed while the cluster ran. A run that succeeded never changes."""

    cluster: SteadyCluster
    succeeded: dict[int, JobRun] = field(default_factory=dict)
    changed: list[tuple[JobRun, JobRun]] = field(default_factory=list)
    longest_stale_ms: int = 0  # a run was RUNNING this long after its lease ended
    codes: Counter[str] = field(default_factory=Counter)
    _seen: set[tuple[int, int, str]] = field(default_factory=set)

    def look(self, limit: int = 50) -> None:
        """Look at the newest runs. A store that is away is looked at later."""
        with suppress(errors.StoreError):
            engine = self.cluster.services.engine
            now_ms = database_clock.now_ms(engine)
            for run in job_history.runs(engine, STEADY, limit=limit):
                self._judge(run, now_ms)

    def _judge(self, run: JobRun, now_ms: int) -> None:
        before = self.succeeded.get(run.id)
        if before is not None and before != run:
            self.changed.append((before, run))
        if run.status is Status.SUCCESS:
            self.succeeded[run.id] = run
        elif run.status is Status.RUNNING:
            self.longest_stale_ms = max(self.longest_stale_ms, now_ms - run.stale_ms)
        elif (key := (run.id, run.attempt, run.error_code)) not in self._seen:
            self._seen.add(key)
            self.codes[run.error_code] += 1


@dataclass
class Chaos:
    """Strikes beats that lead and workers at random, and mends what it broke."""

    cluster: SteadyCluster
    random: random.Random
    watch: Watch
    strikes: Counter[str] = field(default_factory=Counter)
    _mends: list[tuple[float, Callable[[], object]]] = field(default_factory=list)
    _down: set[int] = field(default_factory=set)  # processes that are struck already

    def rage(
        self,
        seconds: float,
        victims: Sequence[str],
        once: Sequence[Callable[[], object]] = (),
    ) -> None:
        """Strike leaders and workers, whichever `victims` names, for some time.

        Each function of `once` is called once, at even distances.
        """
        began_mono = time.monotonic()
        planned = [
            (began_mono + seconds * number / (len(once) + 1), strike)
            for number, strike in enumerate(once, start=1)
        ]
        next_mono = began_mono + 1.0
        while time.monotonic() < began_mono + seconds:
            self._mend()
            while planned and time.monotonic() >= planned[0][0]:
                planned.pop(0)[1]()
            if time.monotonic() >= next_mono and self._strike(self.random.choice(victims)):
                next_mono = time.monotonic() + self.random.uniform(*BETWEEN_S)
            self.watch.look()
            time.sleep(STEP_S)
        self._mend(at_once=True)

    def later(self, seconds: float, mend: Callable[[], object]) -> None:
        self._mends.append((time.monotonic() + seconds, mend))

    def _mend(self, at_once: bool = False) -> None:
        due = [each for each in self._mends if at_once or each[0] <= time.monotonic()]
        for each in due:
            self._mends.remove(each)
            each[1]()

    def _strike(self, role: str) -> bool:
        """Strike a leader or a worker. False: none of them runs."""
        victim: Program | None
        try:
            victim = self.cluster.leader() if role == "leader" else self._any_worker()
        except errors.StoreError:
            return False
        if victim is None or victim.pid in self._down:
            return False
        self.random.choice((self._kill, self._terminate, self._freeze))(role, victim)
        return True

    def _any_worker(self) -> Program | None:
        running = [
            each
            for each in self.cluster.workers
            if each.pid not in self._down and f"{each.name} ready" in each.text()
        ]
        return self.random.choice(running) if running else None

    def _kill(self, role: str, victim: Program) -> None:
        self.strikes[f"{role} kill -9"] += 1
        victim.kill()
        self._replace(role, victim)

    def _terminate(self, role: str, victim: Program) -> None:
        self.strikes[f"{role} SIGTERM"] += 1
        victim.terminate()
        self._replace(role, victim)

    def _freeze(self, role: str, victim: Program) -> None:
        self.strikes[f"{role} SIGSTOP"] += 1
        victim.freeze()
        self._down.add(victim.pid)

        def thaw() -> None:
            self._down.discard(victim.pid)
            victim.thaw()

        self.later(self.random.uniform(*FROZEN_S), thaw)

    def _replace(self, role: str, victim: Program) -> None:
        programs: list[Program] = (
            self.cluster.beats if role == "leader" else self.cluster.workers  # type: ignore[assignment]
        )
        start = self.cluster.start_beat if role == "leader" else self.cluster.start_worker
        self._down.add(victim.pid)

        def replace() -> None:
            victim.wait(within_s=30)
            programs.remove(victim)
            start()

        self.later(self.random.uniform(*REPLACED_S), replace)


@dataclass(frozen=True)
class Verdict:
    """The ledger and the lines of the handlers, compared with the plans of the cadence."""

    plans: int
    missing: list[int]
    unsuccessful: list[JobRun]
    doubled: list[int]  # plans that two runs ended, though no attempt failed in between
    retried: int  # plans that needed more than one attempt
    most_attempts: int
    longest_wait_s: float  # from a plan to the first attempt
    longest_end_s: float  # from a plan to its success
    out_of_order: list[int]

    @property
    def faults(self) -> dict[str, object]:
        """What must not be."""
        found = {
            "missing": self.missing,
            "not a success": self.unsuccessful,
            "doubled": self.doubled,
            "out of order": self.out_of_order,
        }
        return {name: value for name, value in found.items() if value}

    def text(self) -> str:
        return (
            f"{self.plans} plans, {self.retried} with more than one attempt (at most "
            f"{self.most_attempts}); first attempt at most {self.longest_wait_s:.1f} s after the "
            f"plan, success at most {self.longest_end_s:.1f} s after it"
        )


def settle(cluster: SteadyCluster, within_s: float = SETTLE_S) -> Verdict:
    """Wait until every plan up to now has ended well, then judge all of them."""
    last_ms = _latest_plan_ms(cluster)

    def is_settled() -> bool:
        verdict = judge(cluster, last_ms)
        return not verdict.missing and not verdict.unsuccessful

    with suppress(AssertionError):  # the verdict says what is missing
        soon(is_settled, within_s, "every plan is run")
    return judge(cluster, last_ms)


def judge(cluster: SteadyCluster, last_ms: int) -> Verdict:
    """Compare the ledger with the plans from the first run on."""
    runs = [run for run in cluster.runs() if run.plan.plan_ms <= last_ms]
    by_plan = {run.plan.plan_ms: run for run in runs}
    first_ms = min(by_plan, default=last_ms)
    expected = range(first_ms, last_ms + 1, cluster.cadence_ms)
    began: defaultdict[int, list[Line]] = defaultdict(list)
    for line in cluster.lines("began"):
        began[line.plan_ms].append(line)
    ended = Counter(line.plan_ms for line in cluster.lines("ended"))
    starts = [began[plan][0] for plan in expected if began[plan]]
    order = [line.plan_ms for line in sorted(starts, key=lambda line: line.at_s)]
    return Verdict(
        plans=len(expected),
        missing=[plan for plan in expected if plan not in by_plan],
        unsuccessful=[run for run in runs if run.status is not Status.SUCCESS],
        doubled=[plan for plan in expected if ended[plan] > 1 and by_plan[plan].attempt == 1],
        retried=sum(run.attempt > 1 for run in runs),
        most_attempts=max((run.attempt for run in runs), default=0),
        longest_wait_s=max((line.at_s - line.plan_ms / 1000 for line in starts), default=0.0),
        longest_end_s=max(((run.finished_ms or 0) - run.plan.plan_ms for run in runs), default=0)
        / 1000,
        out_of_order=[b for a, b in pairwise(order) if b < a],
    )


def _latest_plan_ms(cluster: SteadyCluster) -> int:
    now_ms = database_clock.now_ms(cluster.services.engine)
    return now_ms - now_ms % cluster.cadence_ms
