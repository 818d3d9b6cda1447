"""The page of all jobs, and that of one job, as texts. The columns are those of `poller jobs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller.domain.inventory import duration
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import JobRun, Status
from poller.presentation import formatting, job_json, job_texts
from poller.presentation.health import GLYPHS, Tone
from poller.presentation.job_states import TROUBLED, BrokenJob, JobList, ListedJob
from poller.service import job_listing
from poller.service.job_listing import ShownJob

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
_RUN_TONES = {Status.SUCCESS: Tone.OK, Status.FAILED: Tone.FAILING, Status.RUNNING: Tone.UNKNOWN}


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


@dataclass(frozen=True, slots=True)
class RunRow:
    plan: str
    scope: str
    outcome: str
    tone: str
    attempts: str
    runner: str
    late: str
    took: str
    rows: str
    result: str  # the error, or the details of what the handler returned


@dataclass(frozen=True, slots=True)
class JobsView:
    as_of: str
    rows: Sequence[JobRow]
    more: str  # "12 more, not shown", or an empty text
    counts: Sequence[tuple[str, str]]  # tone and text: `3 failing`
    broken: Sequence[BrokenJob] = ()  # cannot be used by their workers


@dataclass(frozen=True, slots=True)
class JobView:
    as_of: str
    job: JobRow
    description: str
    terms: Sequence[tuple[str, str]]
    plans: Sequence[Mapping[str, Any]]  # local and UTC
    runs: Sequence[RunRow]
    last_result: str
    last_error: str


def build_view(found: JobList) -> JobsView:
    """Build the view of all jobs; those in trouble first, then by name."""
    order = {state: number for number, state in enumerate(TROUBLED)}
    jobs = sorted(found.jobs, key=lambda each: (order.get(each.state, len(order)), each.name))
    hidden = len(jobs) - MOST_ROWS
    return JobsView(
        as_of=formatting.instant(found.as_of_ms),
        rows=[_row(each) for each in jobs[:MOST_ROWS]],
        more=f"{formatting.exact(hidden)} more: poller jobs" if hidden > 0 else "",
        counts=list(_counts(jobs)),
        broken=found.broken,
    )


def build_job_view(shown: ShownJob) -> JobView:
    """Build the view of one job."""
    listed = shown.listed
    document = job_listing.document(shown)
    return JobView(
        as_of=formatting.instant(listed.as_of_ms),
        job=_row(listed),
        description=listed.job.terms.description,
        terms=list(_terms(shown)),
        plans=job_json.jsonable(document)["next_plans"],
        runs=[_run(each) for each in shown.runs],
        last_result=job_listing.result_text(document["last_result"]),
        last_error=document["last_error"],
    )


def _counts(jobs: Sequence[ListedJob]) -> Iterator[tuple[str, str]]:
    """The number of jobs in each state that occurs: `2 failing`."""
    for state in (*TROUBLED, JobState.RUNNING, JobState.OK, JobState.WAITING, JobState.PAUSED):
        number = sum(each.state is state for each in jobs)
        if number:
            tone = _TONES[state]
            yield str(tone), f"{GLYPHS[tone]} {formatting.exact(number)} {state}"


def _row(listed: ListedJob) -> JobRow:
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
        outcome_tone=str(_RUN_TONES[last.status]) if last else "",
        took=_length(last.duration_ms) if last else formatting.NOT_MEASURED,
        attempts=_attempts(last) if last else formatting.NOT_MEASURED,
        next_retry=_until(retry_ms, now_ms),
    )


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


def _run(run: JobRun) -> RunRow:
    tone = _RUN_TONES[run.status]
    return RunRow(
        plan=formatting.instant(run.plan.plan_ms),
        scope=run.plan.scope,
        outcome=f"{GLYPHS[tone]} {run.status.lower()}",
        tone=str(tone),
        attempts=_attempts(run),
        runner=run.runner,
        late=job_texts.late(run.origin, job_json.late_ms(run)) or formatting.NOT_MEASURED,
        took=_length(run.duration_ms),
        rows=formatting.exact(run.rows_affected),
        result=job_texts.outcome(run),
    )


def _terms(shown: ShownJob) -> Iterator[tuple[str, str]]:
    """The terms, package, workers and scopes, each with its name."""
    terms = shown.listed.job.terms
    yield from job_listing.terms_in_words(terms)
    yield "package", shown.listed.job.distribution
    yield "workers", job_listing.workers_in_words(shown.listed.workers)
    yield "scopes", job_listing.scopes_in_words(shown)


def _attempts(run: JobRun) -> str:
    return job_texts.attempts(run.attempt, run.max_attempts)


def _length(ms: int | None) -> str:
    return formatting.NOT_MEASURED if ms is None else duration.rounded_text(ms)


def _until(ms: int | None, now_ms: int) -> str:
    if ms is None:
        return formatting.NOT_MEASURED
    return "due" if ms <= now_ms else f"in {formatting.age(ms - now_ms)}"


def _instant(ms: int | None) -> str:
    return "" if ms is None else formatting.instant(ms)
