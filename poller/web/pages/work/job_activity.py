"""The activity of jobs as texts: what runs now, what is due next, and the newest ticks.

A tick is a plan that was due: the run that was made of it, or why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from poller.domain.inventory import duration
from poller.domain.jobs import due_minutes, skipped_plan
from poller.domain.jobs.due_minutes import DueMinute
from poller.domain.jobs.job_run import JobRun, Status
from poller.domain.jobs.skipped_plan import PlanFacts, SkippedPlan, SkipReason
from poller.presentation import formatting, job_json, job_texts
from poller.presentation.health import Tone
from poller.presentation.job_states import ListedJob

#: Rows of the table of what runs; the oldest compared with their usual time come first.
MOST_RUNNING = 100
#: Rows of the table of ticks, and characters of a good result; the page of the job has all.
TICKS = 12
LONGEST_RESULT = 80
#: The minutes of the chart of what is due.
MINUTES = 15
#: A run that takes so many times as long as usual is late.
LATE_TIMES = 2
#: Jobs that a row of a minute names.
NAMED = 4
_TONES = {Status.SUCCESS: Tone.OK, Status.FAILED: Tone.FAILING, Status.RUNNING: Tone.UNKNOWN}


@dataclass(frozen=True, slots=True)
class RunningRow:
    """A run that goes on."""

    key: str
    job: str
    scope: str
    tone: str
    state: str  # running, longer than usual, or past its time-out
    since: str  # an instant
    age: str
    usual: str
    limit: str
    heartbeat: str
    is_silent: bool  # it missed heartbeats
    runner: str
    attempts: str


@dataclass(frozen=True, slots=True)
class TickRow:
    """A plan that was due: its run, or why it has none."""

    key: str
    plan: str
    job: str
    scope: str
    tone: str
    outcome: str
    took: str
    late: str
    text: str


@dataclass(frozen=True, slots=True)
class MinuteRow:
    """One minute ahead. Its bar begins at `x`; `height` is in hundredths of the highest."""

    start: str
    total: int
    jobs: str
    x: int
    height: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """The plans of the next minutes."""

    sentence: str
    minutes: Sequence[MinuteRow]
    total: int


def running(jobs: Iterable[ListedJob]) -> list[RunningRow]:
    """The runs that go on: those that are longest over their usual time come first."""
    found = [(run, listed) for listed in jobs for run in listed.summary.running]
    found.sort(key=lambda each: (-_share(*each), each[0].plan))
    return [_running(run, listed) for run, listed in found[:MOST_RUNNING]]


def ticks(jobs: Iterable[ListedJob], runs: Iterable[JobRun]) -> list[TickRow]:
    """The newest ticks: runs of the ledger, and the newest plan of each job without a run."""
    known = {listed.name: listed for listed in jobs}
    rows = [(run.plan.plan_ms, _tick(run)) for run in runs]
    for listed in known.values():
        skipped = skipped_plan.newest(_facts(listed))
        if skipped is not None:
            rows.append((skipped.plan_ms, _skipped(listed, skipped)))
    rows.sort(key=lambda each: each[0], reverse=True)
    return [row for _, row in rows[:TICKS]]


def forecast(jobs: Sequence[ListedJob], now_ms: int) -> Forecast:
    """The plans that are due in the next minutes."""
    planned = [(each.job.terms, each.next_plan_ms) for each in jobs if each.next_plan_ms]
    minutes = due_minutes.ahead(planned, now_ms, MINUTES)
    most = max(minutes, key=lambda each: each.total)
    total = sum(each.total for each in minutes)
    rows = [_minute(each, number, most.total) for number, each in enumerate(minutes)]
    return Forecast(_sentence(total, most), rows, total)


def _share(run: JobRun, listed: ListedJob) -> float:
    """How often the usual time of a run has passed. Without one its time-out stands for it."""
    usual_ms = listed.summary.usual_ms or round(listed.job.terms.run_timeout_s * 1000)
    return (listed.as_of_ms - run.started_ms) / max(1, usual_ms)


def _running(run: JobRun, listed: ListedJob) -> RunningRow:
    now_ms, terms = listed.as_of_ms, listed.job.terms
    age_ms = now_ms - run.started_ms
    tone, state = _running_state(run, listed, age_ms)
    usual_ms = listed.summary.usual_ms
    return RunningRow(
        key=f"{run.plan.job} {run.plan.scope} {run.plan.plan_ms}",
        job=run.plan.job,
        scope=run.plan.scope,
        tone=str(tone),
        state=state,
        since=formatting.instant(run.started_ms),
        age=formatting.age(age_ms),
        usual=formatting.NOT_MEASURED if usual_ms is None else duration.rounded_text(usual_ms),
        limit=duration.rounded_text(round(terms.run_timeout_s * 1000)),
        heartbeat=formatting.age(now_ms - run.heartbeat_ms),
        is_silent=now_ms - run.heartbeat_ms > 2_000 * terms.heartbeat_s,
        runner=run.runner,
        attempts=job_texts.attempts(run.attempt, run.max_attempts),
    )


def _running_state(run: JobRun, listed: ListedJob, age_ms: int) -> tuple[Tone, str]:
    terms, usual_ms = listed.job.terms, listed.summary.usual_ms
    if listed.as_of_ms >= run.stale_ms:
        return Tone.FAILING, "abandoned: its runner is silent"
    if age_ms > terms.run_timeout_s * 1000:
        return Tone.FAILING, "past its time-out"
    if usual_ms is not None and age_ms > LATE_TIMES * usual_ms + 1_000:
        return Tone.LATE, "longer than usual"
    return Tone.OK, "running"


def _facts(listed: ListedJob) -> PlanFacts:
    job = listed.job
    is_gone = job.gone_ms is not None
    return PlanFacts(
        terms=job.terms,
        summary=listed.summary,
        announced_ms=listed.as_of_ms if is_gone else job.announced_ms,
        now_ms=listed.as_of_ms,
        paused_ms=job.paused_ms,
        is_served=listed.workers is None or bool(listed.workers),
        planning_fault=job.planning_fault,
    )


def _tick(run: JobRun) -> TickRow:
    late = job_texts.late(run.origin, job_json.late_ms(run))
    took_ms = run.duration_ms
    return TickRow(
        key=f"{run.plan.job} {run.plan.scope} {run.plan.plan_ms}",
        plan=formatting.instant(run.plan.plan_ms),
        job=run.plan.job,
        scope=run.plan.scope,
        tone=str(_TONES[run.status]),
        outcome=run.status.lower(),
        took=formatting.NOT_MEASURED if took_ms is None else duration.rounded_text(took_ms),
        late=late or formatting.NOT_MEASURED,
        text=_result(run),
    )


def _result(run: JobRun) -> str:
    """The error in full, or the beginning of a good result."""
    text = job_texts.outcome(run)
    is_short = run.status is Status.FAILED or len(text) <= LONGEST_RESULT
    return text if is_short else f"{text[: LONGEST_RESULT - 1]}…"


def _skipped(listed: ListedJob, skipped: SkippedPlan) -> TickRow:
    is_wanted = skipped.reason is SkipReason.PAUSED
    return TickRow(
        key=f"{listed.name} skipped {skipped.plan_ms}",
        plan=formatting.instant(skipped.plan_ms),
        job=listed.name,
        scope="",
        tone=str(Tone.UNKNOWN if is_wanted else Tone.LATE),
        outcome="skipped",
        took=formatting.NOT_MEASURED,
        late=formatting.NOT_MEASURED,
        text=_skip_text(listed, skipped.reason),
    )


def _skip_text(listed: ListedJob, reason: SkipReason) -> str:
    """Why a plan has no run, as exactly as it is known."""
    job = listed.job
    if reason is SkipReason.PAUSED:
        return f"paused by {job.paused_by}"
    if reason is SkipReason.UNSERVED:
        return f"no running worker has {job.distribution}"
    if reason is SkipReason.UNPLANNED:
        return f"it cannot be planned: {job.planning_fault}"
    if reason is SkipReason.STILL_RUNNING:
        run = listed.summary.running[0]
        age = formatting.age(listed.as_of_ms - run.started_ms)
        return f"lease held: {run.runner} has run {run.plan.scope} for {age}"
    if reason is SkipReason.HELD_BACK:
        return listed.held_text or reason.value
    return "no run was started yet"


def _minute(of: DueMinute, number: int, most: int) -> MinuteRow:
    return MinuteRow(
        start=formatting.instant(of.start_ms),
        total=of.total,
        jobs=", ".join(_named(of)),
        x=10 * number + 1,
        height=round(100 * of.total / most) if most else 0,
    )


def _named(of: DueMinute) -> Iterator[str]:
    """The jobs of a minute, those with the most plans first: `prune`, `report 3 times`."""
    for name, plans in of.plans.most_common(NAMED):
        yield name if plans == 1 else f"{name} {formatting.exact(plans)} times"
    more = len(of.plans) - NAMED
    if more > 0:
        yield f"and {formatting.counted(more, 'job')} more"


def _sentence(total: int, most: DueMinute) -> str:
    plans = f"{formatting.counted(total, 'plan')} in the next {MINUTES} minutes"
    if not total:
        return f"No plan is due in the next {MINUTES} minutes."
    clock = formatting.instant(most.start_ms)[11:16]
    return f"{plans}, the most, {formatting.exact(most.total)}, in the minute from {clock} UTC."
