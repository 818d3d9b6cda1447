"""Follows a run of a job until it ends: its heartbeat, its attempt, and its result."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from poller.cli.actions.result_wait import TIMED_OUT
from poller.cli.output import render
from poller.cli.output.columns import one_line
from poller.domain.inventory import duration
from poller.domain.jobs.job_run import GLOBAL, JobRun, Status
from poller.presentation import formatting, job_json, job_texts

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.job_actions import StartedRun

SCHEMA = "poller.jobs.run/1"
#: The row is read again after this time, then twice as long, up to the longest.
CHECK_S = 0.05
LONGEST_CHECK_S = 0.5
LINE_EVERY_S = 10.0
#: A failed run whose next attempt comes within this time is followed further.
SOON_MS = 5_000


def sent(started: StartedRun, as_json: bool) -> None:
    """Print what was sent, without waiting for it."""
    plan = started.plan
    item = {
        "job": plan.job,
        "plan": job_json.instant(plan.plan_ms),
        "scope_kind": plan.scope_kind,
        "scope_id": plan.scope_id,
        "outcome": "sent",
    }
    text = f"sent {_named(started)}"
    render.changed(text, SCHEMA, item, as_json, f"poller jobs history {plan.job}")


def until_end(
    services: Services, started: StartedRun, patience_s: float | None, as_json: bool
) -> None:
    """Show the progress on stderr and the result on stdout.

    Exits with 1 for a run that failed, with 124 after the patience.
    """
    try:
        with _Progress(started) as progress:
            found, ended, now_ms = _follow(services, started, patience_s, progress)
    except KeyboardInterrupt:
        render.note(f"{_named(started)} goes on without this command")
        raise

    if not ended:
        where = _state_text(found, now_ms) if found else "no worker has taken it yet"
        render.note(f"{_named(started)} has not ended: {where}; it goes on without this command")
        render.note(f"next: poller jobs show {started.plan.job}")
        raise typer.Exit(TIMED_OUT)

    assert found is not None
    render.changed(_result_text(started, found), SCHEMA, job_json.run(found, now_ms), as_json)
    if found.status is Status.FAILED:
        render.note(_next_step(found))
        raise typer.Exit(1)


def _follow(
    services: Services,
    started: StartedRun,
    patience_s: float | None,
    progress: Callable[[str], None],
) -> tuple[JobRun | None, bool, int]:
    """The last row seen, whether the run has ended, and the database's clock."""
    from poller.db import database_clock
    from poller.service import job_actions

    until_mono = None if patience_s is None else time.monotonic() + patience_s
    pause_s = CHECK_S
    while True:
        row = job_actions.row(services, started.plan)
        found = row if started.is_row(row) else None
        now_ms = database_clock.now_ms(services.engine)
        if found is not None and _has_ended(found, now_ms):
            return found, True, now_ms
        if until_mono is not None and time.monotonic() >= until_mono:
            return found, False, now_ms

        progress(_state_text(found, now_ms) if found else "waiting for a worker to take it")
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, LONGEST_CHECK_S)


def _has_ended(run: JobRun, now_ms: int) -> bool:
    """Whether the run is over. One that is run again at once goes on: its worker was lost."""
    if run.status is Status.FAILED and run.next_retry_ms is not None:
        return run.next_retry_ms > now_ms + SOON_MS
    return run.status is not Status.RUNNING


class _Progress:
    """One moving line on a terminal; elsewhere a line every ten seconds."""

    def __init__(self, started: StartedRun) -> None:
        self._title = _named(started)
        self._printed_mono = time.monotonic()
        self._is_moving = sys.stderr.isatty() and not render.accessible()
        self._status = render.console(stderr=True).status(self._title) if self._is_moving else None

    def __enter__(self) -> _Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, text: str) -> None:
        line = f"{self._title}: {text}"
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(line))
            return
        now = time.monotonic()
        if now - self._printed_mono >= LINE_EVERY_S:
            self._printed_mono = now
            render.note(line)


def _named(started: StartedRun) -> str:
    """`job nightly for site:ams, plan 2026-11-18T02:00:00Z`."""
    plan = started.plan
    of_scope = "" if plan.scope == GLOBAL else f" for {plan.scope}"
    again = ", again" if started.is_repair else ""
    return f"job {plan.job}{of_scope}, plan {formatting.instant(plan.plan_ms)}{again}"


def _state_text(run: JobRun, now_ms: int) -> str:
    """`runs on w1@host for 12 s, heartbeat 2 s ago, attempt 1 of 3`."""
    if run.status is Status.FAILED:
        return f"{_attempt(run)} failed: {run.error_code}; again soon"
    age = formatting.age(now_ms - run.started_ms)
    heartbeat = formatting.age(now_ms - run.heartbeat_ms)
    return f"runs on {run.runner} for {age}, heartbeat {heartbeat} ago, {_attempt(run)}"


def _result_text(started: StartedRun, run: JobRun) -> str:
    took = duration.rounded_text(run.duration_ms or 0)
    if run.status is Status.SUCCESS:
        reported = _reported(run)
        result = f": {reported}" if reported else ""
        return f"{_named(started)} succeeded on {run.runner} after {took}{result}"
    error = job_texts.error(run.error_code, run.message)
    return f"{_named(started)} failed on {run.runner} after {took}, {_attempt(run)}: {error}"


def _reported(run: JobRun) -> str:
    """`7 rows, devices=42`: what the handler returned; "" if that was nothing."""
    rows = formatting.counted(run.rows_affected, "row") if run.rows_affected else ""
    details = one_line(job_texts.details(run.result))
    return ", ".join(part for part in (rows, details) if part)


def _attempt(run: JobRun) -> str:
    return f"attempt {job_texts.attempts(run.attempt, run.max_attempts)}"


def _next_step(run: JobRun) -> str:
    plan = run.plan
    if run.next_retry_ms is not None:
        return f"it is run again by itself at {formatting.instant(run.next_retry_ms)}"
    of_scope = "" if plan.scope == GLOBAL else f" --scope {shlex.quote(plan.scope)}"
    at = formatting.instant(plan.plan_ms)
    return f"next: poller jobs run {plan.job}{of_scope} --plan {at}"
