"""The page of one job as texts: what runs, its runs, its terms, and the forms to act on it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.domain.jobs import job_run
from poller.domain.jobs.job_run import JobRun, Plan, Status
from poller.presentation import formatting, job_json, job_texts
from poller.presentation.health import GLYPHS, Tone
from poller.service import job_listing
from poller.service.job_actions import StartedRun
from poller.service.job_listing import ShownJob
from poller.web.pages.device.target_form import FormField
from poller.web.pages.work import job_activity, jobs_page
from poller.web.pages.work.job_activity import RunningRow
from poller.web.pages.work.jobs_page import JobRow

_DONE = {
    "pause": "Paused: no plan is started until it is resumed. A run that goes on is not ended.",
    "resume": "Resumed: plans of the pause follow as its catch-up says.",
    "same": "Nothing was changed: it was so before.",
}


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of the ledger."""

    key: str
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
    may_repeat: bool  # a person may run this plan once more
    plan_text: str  # the plan to the millisecond, as the form sends it
    command: str  # that runs this plan once more


@dataclass(frozen=True, slots=True)
class RunForm:
    """The form of a run by hand, with what was typed and why it was refused."""

    scope: FormField
    plan: FormField
    error: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class SentRun:
    """A run that was asked for, and how it goes on."""

    text: str
    tone: str
    state: str
    is_over: bool


@dataclass(frozen=True, slots=True)
class JobView:
    """One job with its forms."""

    as_of: str
    job: JobRow
    description: str
    terms: Sequence[tuple[str, str]]
    plans: Sequence[Mapping[str, Any]]  # local and UTC
    running: Sequence[RunningRow]
    runs: Sequence[RunRow]
    last_result: str
    last_error: str
    is_gone: bool
    form: RunForm
    said: str
    sent: SentRun | None
    commands: Mapping[str, str]  # by action: the same in a terminal

    @property
    def live_s(self) -> int:
        """The seconds after which the page reads itself again; a refused form is left alone."""
        if self.form.error:
            return 0
        return 2 if self.sent and not self.sent.is_over else 5


def build_view(
    shown: ShownJob,
    did: str = "",
    sent: SentRun | None = None,
    refused: tuple[Mapping[str, str], errors.PollerError] | None = None,
) -> JobView:
    """Build the view of one job. A `refused` form keeps its texts."""
    listed = shown.listed
    document = job_listing.document(shown)
    return JobView(
        as_of=formatting.instant(listed.as_of_ms),
        job=jobs_page.row_of(listed),
        description=listed.job.terms.description,
        terms=list(_terms(shown)),
        plans=job_json.jsonable(document)["next_plans"],
        running=job_activity.running([listed]),
        runs=[_run(run) for run in shown.runs],
        last_result=job_listing.result_text(document["last_result"]),
        last_error=document["last_error"],
        is_gone=listed.job.gone_ms is not None,
        form=_form(shown, refused),
        said=_DONE.get(did, ""),
        sent=sent,
        commands={
            verb: shlex.join(["poller", "jobs", verb, listed.name])
            for verb in ("run", "pause", "resume", "forget", "show")
        },
    )


def sent_run(started: StartedRun, row: JobRun | None, now_ms: int) -> SentRun:
    """How a run goes on that was asked for, from its row in the ledger."""
    plan = started.plan
    text = f"Run of {formatting.instant(plan.plan_ms)}"
    if plan.scope != job_run.GLOBAL:
        text += f" for {plan.scope}"
    if not started.is_row(row) or row is None:
        return SentRun(text, str(Tone.UNKNOWN), "sent; no worker has started it yet", False)
    if row.status is Status.RUNNING:
        age = formatting.age(now_ms - row.started_ms)
        return SentRun(text, str(Tone.UNKNOWN), f"{row.runner} runs it, for {age}", False)
    took = jobs_page.length(row.duration_ms)
    details = job_texts.outcome(row)
    state = f"{row.status.lower()} after {took}{f': {details}' if details else ''}"
    return SentRun(text, str(jobs_page.RUN_TONES[row.status]), state, True)


def repeat_command(plan: Plan) -> str:
    """The command that runs a plan once more."""
    command = f"poller jobs run {shlex.quote(plan.job)} --plan {plan_text(plan.plan_ms)}"
    is_global = plan.scope == job_run.GLOBAL
    return command if is_global else f"{command} --scope {shlex.quote(plan.scope)}"


def plan_text(plan_ms: int) -> str:
    """A plan to the millisecond, if it is not a whole second."""
    text, part_ms = formatting.instant(plan_ms), plan_ms % 1000
    return f"{text.removesuffix('Z')}.{part_ms:03}Z" if part_ms else text


def _run(run: JobRun) -> RunRow:
    tone = jobs_page.RUN_TONES[run.status]
    return RunRow(
        key=str(run.id),
        plan=formatting.instant(run.plan.plan_ms),
        scope=run.plan.scope,
        outcome=f"{GLYPHS[tone]} {run.status.lower()}",
        tone=str(tone),
        attempts=job_texts.attempts(run.attempt, run.max_attempts),
        runner=run.runner,
        late=job_texts.late(run.origin, job_json.late_ms(run)) or formatting.NOT_MEASURED,
        took=jobs_page.length(run.duration_ms),
        rows=formatting.exact(run.rows_affected),
        result=job_texts.outcome(run),
        may_repeat=run.status is Status.FAILED,
        plan_text=plan_text(run.plan.plan_ms),
        command=repeat_command(run.plan),
    )


def _form(shown: ShownJob, refused: tuple[Mapping[str, str], errors.PollerError] | None) -> RunForm:
    texts, error = refused if refused else ({}, None)
    message = f"{error.message}." if error else ""
    wrong = getattr(error, "field", "")
    is_of_scope = wrong in ("scope", "scope_kind")
    is_of_plan = wrong == "plan"
    names_scopes = shown.listed.job.terms.names_scopes
    scope = FormField(
        name="scope",
        label="Scope",
        text=texts.get("scope", ""),
        help="KIND:ID, such as site:ams" if names_scopes else "empty: the whole cluster",
        error=message if is_of_scope else "",
        is_required=names_scopes,
        suggestions=[job_run.scope_text(kind, key) for kind, key in shown.scopes],
    )
    plan = FormField(
        name="plan",
        label="Plan",
        text=texts.get("plan", ""),
        help="empty: now; a failed or missed plan, such as 2026-11-18T02:00:00Z",
        error=message if is_of_plan else "",
    )
    hint = ". ".join(part for part in (error.cause, error.hint) if part) if error else ""
    return RunForm(scope, plan, message, hint)


def _terms(shown: ShownJob) -> Iterator[tuple[str, str]]:
    """The terms, package, workers and scopes, each with its name."""
    terms = shown.listed.job.terms
    yield from job_listing.terms_in_words(terms)
    yield "package", shown.listed.job.distribution
    yield "workers", job_listing.workers_in_words(shown.listed.workers)
    yield "scopes", job_listing.scopes_in_words(shown)
