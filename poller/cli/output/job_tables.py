"""The tables and the record of `poller jobs`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from poller.cli.output import render
from poller.cli.output.columns import (
    Column,
    Fit,
    Item,
    column,
    moment,
    one_line,
    plain,
)
from poller.domain.inventory import duration
from poller.domain.jobs import job_run
from poller.presentation import formatting, job_texts

if TYPE_CHECKING:
    from poller.service.job_listing import ShownJob

#: The colour of each state on a terminal.
STYLES = {
    "ok": "cyan",
    "success": "cyan",
    "running": "cyan",
    "failing": "red",
    "failed": "red",
    "overdue": "yellow",
    "unserved": "yellow",
    "paused": "dim",
    "waiting": "dim",
    "gone": "dim",
}


def _styled(title: str, key: str, spare: int = 0) -> Column:
    """A column of a state or an outcome, in its colour."""

    def text(item: Item) -> str:
        return plain(item[key])

    def style(item: Item) -> str:
        return STYLES.get(plain(item[key]), "")

    return Column(title, text, fit=Fit.WHOLE, spare=spare, style=style)


def _seconds(title: str, key: str, spare: int = 0) -> Column:
    """A column for seconds, as in `1.2 s`; empty where the item has None."""

    def text(item: Item) -> str:
        return _length(item[key])

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def _length(seconds: float | None) -> str:
    return "" if seconds is None else duration.rounded_text(round(seconds * 1000))


def _last_attempt(item: Item) -> str:
    """`2 of 3`."""
    if item["last_attempt"] is None:
        return ""
    return job_texts.attempts(item["last_attempt"], item["last_max_attempts"])


def _attempt(item: Item) -> str:
    return job_texts.attempts(item["attempt"], item["max_attempts"])


def _late(item: Item) -> str:
    """`150 ms`, or `by hand`."""
    seconds = item["late_seconds"]
    late_ms = None if seconds is None else round(seconds * 1000)
    return job_texts.late(job_run.Origin(item["origin"]), late_ms)


def _result(item: Item) -> str:
    """The error of a run, or the details of its result."""
    error = job_texts.error(item["error_code"], item["message"])
    return error or job_texts.details(item["result"])


def _holder(item: Item) -> str:
    """`w1@host, heartbeat 3 s ago`, and how many scopes more; or why it does not run."""
    running = item["running"]
    if not running:
        return str(item["held_back"])
    first = running[0]
    age = formatting.age(round(first["heartbeat_age_seconds"] * 1000))
    more = item["running_count"] - 1
    others = f" and {formatting.exact(more)} more" if more else ""
    return f"{first['runner']}, heartbeat {age} ago{others}"


def scope_text(item: Item) -> str:
    """`site:ams`; `global` for the whole cluster."""
    return job_run.scope_text(item["scope_kind"], item["scope_id"])


JOBS = (
    column("NAME", "name", fit=Fit.WHOLE),
    _styled("STATE", "state"),
    column("SCHEDULE", "schedule", fit=Fit.WHOLE, spare=3),
    moment("NEXT PLAN", "next_plan"),
    moment("LAST RUN", "last_started", spare=2),
    _styled("OUTCOME", "last_outcome", spare=1),
    _seconds("TOOK", "last_duration_seconds", spare=4),
    Column("ATTEMPT", _last_attempt, right=True, fit=Fit.WHOLE, spare=6),
    moment("NEXT RETRY", "next_retry", spare=5),
    Column("HOLDER", _holder, fit=Fit.REST, spare=7),
)
RUNS = (
    moment("PLAN", "plan"),
    column("JOB", "job", fit=Fit.WHOLE),
    Column("SCOPE", scope_text, fit=Fit.WHOLE),
    _styled("OUTCOME", "outcome"),
    Column("ATTEMPT", _attempt, right=True, fit=Fit.WHOLE, spare=2),
    column("RUNNER", "runner", fit=Fit.WHOLE, spare=3),
    Column("LATE", _late, right=True, fit=Fit.WHOLE, spare=1),
    _seconds("TOOK", "duration_seconds"),
    column("ROWS", "rows", right=True, fit=Fit.WHOLE, spare=4),
    Column("RESULT", _result, fit=Fit.REST),
)
BROKEN = (
    column("BROKEN", "name", fit=Fit.WHOLE),
    column("FROM", "distribution"),
    column("STATE", "state", fit=Fit.WRAP),
    column("REASON", "reason", fit=Fit.WRAP),
)
_PLANS = (
    column("NEXT PLANS", "local", fit=Fit.WHOLE),
    column("UTC", "utc", fit=Fit.WHOLE),
)
_RUNNING = (
    Column("RUNNING", scope_text, fit=Fit.WHOLE),
    moment("PLAN", "plan"),
    column("HOLDER", "runner", fit=Fit.WHOLE),
    _seconds("FOR", "running_seconds"),
    _seconds("HEARTBEAT AGE", "heartbeat_age_seconds"),
    Column("ATTEMPT", _attempt, right=True, fit=Fit.WHOLE),
)


def show(shown: ShownJob, document: Mapping[str, Any]) -> None:
    """Print one job: a record, then its next plans, what runs, and its last runs."""
    from poller.service import job_listing

    render.record("", _record(shown, document), as_json=False)
    sections = (
        (document["next_plans"], _PLANS),
        (document["running"], _RUNNING),
        (document["runs"], RUNS),
    )
    for rows, columns in sections:
        if rows:
            render.echo("")
            render.listing("", rows, columns, as_json=False)
    _print_text("last result", job_listing.result_text(document["last_result"]))
    _print_text("last error", document["last_error"])


def _print_text(title: str, text: str) -> None:
    """A text of some lines below its title; nothing for an empty one."""
    if text:
        render.echo("")
        render.echo(f"{title}:")
        for line in text.splitlines():
            render.echo(f"  {one_line(line)}")


def _record(shown: ShownJob, document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the record, in words; fields without a value are left out."""
    from poller.service import job_listing

    record = {
        "name": document["name"],
        "description": document["description"],
        "state": document["state"],
        **dict(job_listing.terms_in_words(shown.listed.job.terms)),
        "package": document["package"],
        "queue": document["queue"],
        "workers": job_listing.workers_in_words(shown.listed.workers),
        "scopes": job_listing.scopes_in_words(shown),
        "last success": document["last_success"],
        "failures in a row": document["failures_in_a_row"] or None,
        "next retry": document["next_retry"],
        "paused": _paused(document["paused"], document["paused_by"]),
        "gone since": document["gone"],
        "cannot be planned": document["planning_fault"],
        "does not run": document["held_back"],
    }
    return {name: value for name, value in record.items() if value not in (None, "")}


def _paused(at: datetime | None, by: str) -> str:
    return "" if at is None else f"{plain(at)} by {by}"
