"""The page of all jobs as texts. The columns of its list are those of `poller jobs`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller.domain.inventory import duration
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import JobRun, Status
from poller.presentation import formatting, job_texts
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.job_states import TROUBLED, BrokenJob, JobList, ListedJob
from poller.web.pages.work import job_activity
from poller.web.pages.work.job_activity import Forecast, RunningRow, TickRow

#: Rows of the page. Jobs in trouble come first, so that none of them is left out.
MOST_ROWS = 200
#: Characters of an error in the list; the page of the job has all.
LONGEST_NOTE = 300

_TONES = {
    JobState.OK: Tone.OK,
    JobState.RUNNING: Tone.OK,
    JobState.FAILING: Tone.FAILING,
    JobState.OVERDUE: Tone.LATE,
    JobState.UNSERVED: Tone.LATE,
    JobState.PAUSED: Tone.UNKNOWN,
    JobState.WAITING: Tone.UNKNOWN,
}
RUN_TONES = {Status.SUCCESS: Tone.OK, Status.FAILED: Tone.FAILING, Status.RUNNING: Tone.UNKNOWN}
#: Jobs that the command which takes a change back names; more are too long for a line.
FEW = 5
_DONE = {"pause": ("paused", "resume"), "resume": ("resumed", "pause")}


@dataclass(frozen=True, slots=True)
class JobRow:
    name: str
    state: str
    tone: str
    note: str  # why the job does not run, or what its holder does
    schedule: str
    next_plan: str  # an instant, or an empty text
    next_in: str
    last_run: str
    last_ago: str
    outcome: str
    outcome_tone: str
    took: str
    attempts: str
    next_retry: str
    is_paused: bool
    may_run: bool  # a run by hand would not be refused
    names_scopes: bool  # a run by hand needs a scope


@dataclass(frozen=True, slots=True)
class Told:
    """A finished act on some jobs, for the page after it."""

    text: str
    command: str  # that takes it back; "" for none


@dataclass(frozen=True, slots=True)
class JobsView:
    as_of: str
    rows: Sequence[JobRow]
    more: str  # "12 more, not shown", or an empty text
    counts: Sequence[tuple[str, str]]  # tone and text: `3 failing`
    running: Sequence[RunningRow]
    forecast: Forecast
    ticks: Sequence[TickRow]
    broken: Sequence[BrokenJob] = ()  # cannot be used by their workers
    told: Told | None = None


def build_view(found: JobList, runs: Sequence[JobRun] = (), told: Told | None = None) -> JobsView:
    """Build the view of all jobs; those in trouble first, then by name. `runs` are the newest."""
    order = {state: number for number, state in enumerate(TROUBLED)}
    jobs = sorted(found.jobs, key=lambda each: (order.get(each.state, len(order)), each.name))
    hidden = len(jobs) - MOST_ROWS
    return JobsView(
        as_of=formatting.instant(found.as_of_ms),
        rows=[row_of(each) for each in jobs[:MOST_ROWS]],
        more=f"{formatting.exact(hidden)} more: poller jobs" if hidden > 0 else "",
        counts=list(_counts(jobs)),
        running=job_activity.running(jobs),
        forecast=job_activity.forecast(jobs, found.as_of_ms),
        ticks=job_activity.ticks(jobs, runs),
        broken=found.broken,
        told=told,
    )


def told(verb: str, names: Sequence[str], number: int, others: int) -> Told | None:
    """Name the finished act; None for another word. `names` are the first of the changed jobs.

    `others` is the number of jobs that were so before.
    """
    if verb == "forget" and names:
        return Told(f"{names[0]}: removed from the list. Its runs stay until they are pruned.", "")
    if verb not in _DONE:
        return None
    word, back = _DONE[verb]
    what = f"{names[0]} was" if number == 1 and names else _were(number)
    text = f"{what} {word}."
    if others:
        text += f" {_were(others)} {word} before."
    is_whole = bool(names) and len(names) == number
    return Told(text, shlex.join(["poller", "jobs", back, *names]) if is_whole else "")


def _were(number: int) -> str:
    return f"{formatting.counted(number, 'job')} {'was' if number == 1 else 'were'}"


def _counts(jobs: Sequence[ListedJob]) -> Iterator[tuple[str, str]]:
    """The number of jobs in each state that occurs: `2 failing`."""
    for state in (*TROUBLED, JobState.RUNNING, JobState.OK, JobState.WAITING, JobState.PAUSED):
        number = sum(each.state is state for each in jobs)
        if number:
            tone = _TONES[state]
            yield str(tone), f"{GLYPHS[tone]} {formatting.exact(number)} {state}"


def row_of(listed: ListedJob) -> JobRow:
    """The texts of one job."""
    now_ms = listed.as_of_ms
    last = listed.summary.last
    tone = _TONES[listed.state]
    retry_ms = listed.next_retry_ms
    return JobRow(
        name=listed.name,
        state=f"{GLYPHS[tone]} {listed.state_text}",
        tone=str(tone),
        note=_note(listed),
        schedule=listed.job.terms.schedule.text,
        next_plan=_instant(listed.next_plan_ms),
        next_in=_until(listed.next_plan_ms, now_ms),
        last_run=_instant(last.started_ms if last else None),
        last_ago=f"{formatting.age(now_ms - last.started_ms)} ago" if last else "never",
        outcome=last.status.lower() if last else formatting.NOT_MEASURED,
        outcome_tone=str(RUN_TONES[last.status]) if last else "",
        took=length(last.duration_ms) if last else formatting.NOT_MEASURED,
        attempts=_attempts(last) if last else formatting.NOT_MEASURED,
        next_retry=_until(retry_ms, now_ms),
        is_paused=listed.job.paused_ms is not None,
        may_run=_may_run(listed),
        names_scopes=listed.job.terms.names_scopes,
    )


def _may_run(listed: ListedJob) -> bool:
    """Whether a run by hand can start now: a worker has the job, and its lease is free."""
    terms = listed.job.terms
    is_held = bool(listed.summary.running) and not terms.overlap and not terms.names_scopes
    return bool(listed.workers) and listed.job.gone_ms is None and not is_held


def _note(listed: ListedJob) -> str:
    """The reason of a state: who paused it, the missing package, the runner, or the failure."""
    job = listed.job
    summary = listed.summary
    if job.gone_ms is not None:
        return f"{job.distribution} no longer has it"
    if job.paused_ms is not None:
        return f"by {job.paused_by}, {formatting.age(listed.as_of_ms - job.paused_ms)} ago"
    if listed.state is JobState.UNSERVED:
        return f"no running worker has {job.distribution}"
    if summary.running:
        return _holder(listed)
    if job.planning_fault:
        return f"it cannot be planned: {job.planning_fault}"[:LONGEST_NOTE]
    if listed.held_text:
        return listed.held_text
    if listed.state is JobState.FAILING and summary.last:
        return job_texts.error(summary.last.error_code, summary.last.message)[:LONGEST_NOTE]
    return ""


def _holder(listed: ListedJob) -> str:
    """`w1@host, heartbeat 3 s ago`, and how many scopes more."""
    running = listed.summary.running
    heartbeat = formatting.age(listed.as_of_ms - running[0].heartbeat_ms)
    more = len(running) - 1
    others = f" and {formatting.exact(more)} more" if more else ""
    return f"{running[0].runner}, heartbeat {heartbeat} ago{others}"


def _attempts(run: JobRun) -> str:
    return job_texts.attempts(run.attempt, run.max_attempts)


def length(ms: int | None) -> str:
    return formatting.NOT_MEASURED if ms is None else duration.rounded_text(ms)


def _until(ms: int | None, now_ms: int) -> str:
    if ms is None:
        return formatting.NOT_MEASURED
    return "due" if ms <= now_ms else f"in {formatting.age(ms - now_ms)}"


def _instant(ms: int | None) -> str:
    return "" if ms is None else formatting.instant(ms)
