"""`poller status`: the facts of the page, for a terminal: lateness, processes, failures."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.commands import status_failing
from poller.cli.output import render
from poller.cli.output.columns import one_line
from poller.domain.jobs.job_health import JobState
from poller.domain.record.overview import TRAP_RESULTS, LastError, Load, Overview, State, Worker
from poller.presentation import formatting, health, job_json, running_workers, worker_load
from poller.presentation.alerts import alert_json, alert_sentences
from poller.presentation.health import Health
from poller.presentation.job_states import TROUBLED, ListedJob
from poller.presentation.store_check import StoreCheck
from poller.state.cluster import overview_reader

if TYPE_CHECKING:
    from rich.text import Text

    from poller.bootstrap import Services
    from poller.presentation.health_reasons import Stores
    from poller.service.inventory.clear_secrets import ClearSecrets

GLYPHS = {State.OK: "●", State.DEGRADED: "▲", State.FAILING: "■", State.UNKNOWN: "○"}
STYLES = {State.OK: "cyan", State.DEGRADED: "yellow", State.FAILING: "red", State.UNKNOWN: "dim"}

LIMIT = 50
#: Cells before the second line of a long detail: the width of its name.
_INDENT = 13
LAST_ERRORS = 10
#: Jobs in trouble that have a line; the others are counted.
LAST_JOBS = 5
#: Characters of a job's error; `poller jobs show` prints all.
LONGEST_ERROR = 200
#: Printed instead of numbers while there is no device.
FIRST_STEPS = (
    "poller device add NAME ADDRESS --credential CREDENTIAL --collector snmp",
    "poller device import FILE",
    "poller up --demo     (instead of this one: a simulated fleet to look around)",
    "",
)


@expand_options
def command(
    *,
    only_failing: Annotated[
        bool,
        typer.Option(
            "--failing", help="List the targets that fail or wait too long, the worst first."
        ),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of rows, with --failing.", show_default=str(LIMIT)
        ),
    ] = None,
    selection: FilterOptions,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 also when something fails or is late.")
    ] = False,
    as_json: render.Json = False,
) -> None:
    """Print the fleet by state, lateness, leader, workers and the last errors.

    Exit codes: 1 when nothing is polled, 5 when Redis or SQL cannot be used.
    """
    if limit is not None and not only_failing:
        raise errors.InvalidInput(
            "--limit belongs to --failing", hint=f"poller status --failing --limit {limit}"
        )

    if not selection.is_empty and not only_failing:
        raise errors.InvalidInput("a filter belongs to --failing", hint="poller status --failing")

    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    stores = StoreCheck(services).check(view)
    verdict = health.judge(view, stores)

    if only_failing:
        status_failing.show(services, view, selection, limit or LIMIT, as_json)
    elif as_json:
        jobs = job_json.attention(stores.jobs)
        clear = [asdict(each) for each in _clear_secrets(services, stores)]
        alerts = alert_json.numbers(stores.alerts)
        more = {"jobs": jobs, "clear_secrets": clear, "alerts": alerts}
        render.document("poller.status/1", {**_document(view, verdict), **more})
    else:
        is_first_run = health.is_first_run(view, stores)
        details = [*_details(view, is_first_run), *_alerts(stores), *_jobs(stores.jobs)]
        details += [_clear_text(each) for each in _clear_secrets(services, stores)]
        if services.settings.web_url:
            details.append(f"page       {services.settings.web_url}")
        _show(view, verdict, is_first_run, details)

    exit_code = verdict.exit_code
    if strict and verdict.level is health.Level.ATTENTION:
        exit_code = 1
    if exit_code:
        raise typer.Exit(exit_code)


def _clear_secrets(services: Services, stores: Stores) -> Sequence[ClearSecrets]:
    """The targets that send secrets in clear; none while SQL is away."""
    from poller.service.inventory import clear_secrets

    if stores.sql_error:
        return ()
    with suppress(errors.StoreError):
        return clear_secrets.find(services)
    return ()


def _clear_text(found: ClearSecrets) -> str:
    """`clear text 3 targets send their password in clear: poller target list --where '...'`"""
    from poller.service.inventory.clear_secrets import MOST

    more = "at least " if found.count == MOST else ""
    targets = formatting.counted(found.count, "target")
    verb = "sends its password" if found.count == 1 else "send their passwords"
    command = f"poller target list --where {shlex.quote(found.where)}"
    return f"in clear   {more}{targets} {verb} in clear: {command}"


def _show(view: Overview, verdict: Health, is_first_run: bool, details: Sequence[str]) -> None:
    from rich.text import Text

    console = render.console()

    def print_line(text: str, style: str = "") -> None:
        for line in render.wrapped(one_line(text), console, _INDENT if text[:1] == " " else 0):
            console.print(Text(line, style=style), soft_wrap=True)

    print_line(verdict.text, "bold")
    if not is_first_run:
        console.print(_states(view), soft_wrap=True)

    for line in details:
        print_line(f"  {line}")

    if view.errors:
        print_line("Last errors", "bold")

    for error in view.errors[:LAST_ERRORS]:
        print_line(_error(error, view.as_of_ms))

    if view.states.get(State.FAILING) or view.long_overdue:
        render.note("all that fail or wait too long, the worst first: poller status --failing")


def _states(view: Overview) -> Text:
    """The numbers of targets by state, each with its glyph and colour."""
    from rich.text import Text

    utf8 = (sys.stdout.encoding or "").lower().startswith("utf")

    line = Text()
    for state, number in view.states.items():
        glyph = f"{GLYPHS[state]} " if utf8 else ""
        style = STYLES[state] if number else "dim"
        line.append(f"  {glyph}{number:,} {state.value}", style=style)

    return line


def _details(view: Overview, is_first_run: bool) -> Iterator[str]:
    if is_first_run:
        yield from FIRST_STEPS
    else:
        yield from _polling(view)
        yield from _not_polled(view)

    yield from _processes(view)


def _error(error: LastError, now_ms: int) -> str:
    """`  2 m 5 s ago  sw1/snmp  timeout: no answer`"""
    age = formatting.age(now_ms - error.at_ms)
    return f"  {age:>9} ago  {error.device}/{error.target}  {error.code}: {error.message}"


def _polling(view: Overview) -> Iterator[str]:
    yield f"throughput {view.polls_per_second:.1f} polls/s"
    late = view.lateness
    if late.count:
        yield (
            f"lateness   {late.p50_ms:.0f} ms (median), {late.p99_ms:.0f} ms (p99), "
            f"{late.max_ms:.0f} ms (most)"
        )
    else:
        yield "lateness   not measured yet"

    overdue = f"{view.overdue:,} overdue"
    if view.long_overdue:
        overdue += f", {view.long_overdue:,} of them for long"

    in_flight = f"{view.in_flight:,} in flight"
    if view.unstarted:
        in_flight += f" ({view.unstarted:,} not started)"

    board = f"{view.due:,} due ({overdue}), {in_flight}, {view.parked:,} parked"
    if view.held:
        board += f", {view.held:,} held for dark sites"

    yield f"board      {board}"


def _not_polled(view: Overview) -> Iterator[str]:
    """Open breakers and dead letters, each with the command that lists them."""
    breakers = []
    if view.breakers_open:
        breakers.append(f"{view.breakers_open:,} open")

    if view.opened_by_hand:
        breakers.append(f"{view.opened_by_hand:,} opened by hand")

    if breakers:
        yield f"breakers   {', '.join(breakers)}: poller breaker list"

    letters = sum(view.dead_letters.values())
    if letters:
        reasons = [f"{number:,} {reason}" for reason, number in sorted(view.dead_letters.items())]
        yield f"letters    {letters:,} ({', '.join(reasons)}): poller deadletter list"


def _processes(view: Overview) -> Iterator[str]:
    """The leader, the workers, the trap listener, and the queues with their shortage."""
    yield f"leader     {_leader(view)}, {formatting.exact(view.standbys)} standing by"
    labels = view.labels

    for worker in view.workers:
        yield f"worker     {labels[worker.key]}: {_worker(worker, view)}"

    for name, number in running_workers.duplicate_names(view).items():
        yield f"names      {number} workers are called {name}: give each its own with -n"

    stalls = view.totals.get("worker_stalls")
    if stalls:
        times = formatting.counted(stalls, "time")
        yield f"stalls     workers stood still {times}: poller events --kind worker_stalled"

    refused = view.totals.get("queue_entries_refused")
    if refused:
        entries = formatting.counted(refused, "entry", "entries")
        yield f"queues     {entries} set aside: poller events --kind queue_entry_refused"

    traps = view.totals.get("traps_received")
    if traps:
        yield f"traps      {formatting.exact(traps)} received: {_traps(view)}"

    for each in running_workers.unroutable(view):
        targets = formatting.counted(each.targets, "target")
        yield f"unserved   {each.queue}: {targets}; {each.reason}"

    for load in view.loads:
        if load.waiting or load.shortage:
            yield f"queue      {load.queue}: {_load(load)}"


def _alerts(stores: Stores) -> Iterator[str]:
    """The open alerts in numbers, with the command that lists them."""
    words = alert_sentences.in_words(stores.alerts) if stores.alerts else ""
    if words:
        yield f"alerts     {words}: poller alerts"


def _jobs(jobs: Sequence[ListedJob]) -> Iterator[str]:
    """The jobs in trouble, the worst first, each with the command that shows it."""
    troubled = [each for state in TROUBLED for each in jobs if each.state is state]
    for each in troubled[:LAST_JOBS]:
        yield f"job        {each.name}: {_job(each)}; poller jobs show {each.name}"

    more = len(troubled) - LAST_JOBS
    if more > 0:
        yield f"jobs       {formatting.exact(more)} more in trouble: poller jobs"


def _job(listed: ListedJob) -> str:
    """`failing, 3 runs in a row: handler_error: no route`."""
    if listed.state is JobState.UNSERVED:
        return f"unserved, no running worker has {listed.job.distribution}"
    last = listed.summary.last
    if listed.state is JobState.FAILING and listed.job.planning_fault:
        return f"failing, it cannot be planned: {listed.job.planning_fault[:LONGEST_ERROR]}"
    if listed.state is JobState.FAILING and listed.held_text:
        return f"failing, {listed.held_text}"
    if listed.state is not JobState.FAILING or last is None:
        age = formatting.age(listed.as_of_ms - last.started_ms) if last else ""
        return f"overdue, last run {age} ago" if last else "overdue, it never ran"

    error = ": ".join(part for part in (last.error_code, last.message) if part)
    runs = formatting.counted(listed.summary.failures, "run")
    return f"failing, {runs} in a row: {error[:LONGEST_ERROR]}"


def _worker(worker: Worker, view: Overview) -> str:
    """`1,204 polls, last 2 s ago, 3 of 16 batches, 183 MiB, zone=dmz`"""
    now_ms = view.as_of_ms
    parts = [formatting.counted(worker.polls, "poll")]
    if worker.polled_ms:
        parts.append(f"last {formatting.age(now_ms - worker.polled_ms)} ago")

    if running_workers.is_running(worker, view):
        parts.append(worker_load.in_words(worker))
    else:
        parts.append(f"not seen for {formatting.age(now_ms - worker.seen_ms)}")

    parts.append(formatting.size(worker.rss_bytes))
    parts += [f"{key}={value}" for key, value in sorted(worker.tags.items())]
    if worker.rate_limit:
        parts.append(f"limited to {worker.rate_limit}")

    if worker.spool_waiting:
        parts.append(f"{formatting.counted(worker.spool_waiting, 'result')} on its disk")

    if worker.spool_dropped:
        parts.append(f"{formatting.exact(worker.spool_dropped)} dropped")

    return ", ".join(parts)


def _traps(view: Overview) -> str:
    """The results of received notifications, in the order of TRAP_RESULTS."""
    parts = []
    for result in TRAP_RESULTS:
        number = view.totals.get(f"traps_{result}", 0)
        if number:
            parts.append(f"{formatting.exact(number)} {result.replace('_', ' ')}")

    return ", ".join(parts)


def _leader(view: Overview) -> str:
    """`beat@host for 3 h 2 m, epoch 7`, or `none`."""
    leader = view.leader
    if leader is None:
        return "none"
    age = formatting.age(view.as_of_ms - leader.since_ms)
    return f"{leader.name} for {age}, epoch {leader.epoch}"


def _load(load: Load) -> str:
    """`12 batches waiting, needs 1.4 times the workers`"""
    waiting = f"{formatting.counted(load.waiting, 'batch', 'batches')} waiting"
    if not load.shortage:
        return waiting
    return f"{waiting}, needs {load.shortage:.1f} times the workers"


def _document(view: Overview, verdict: Health) -> dict[str, Any]:
    """The overview as JSON, with the verdict and the values that are derived from it.

    The counters by collector are for Prometheus: their keys are no texts.
    """
    fields = asdict(replace(view, by_collector={}))
    del fields["by_collector"]
    return {
        "verdict": verdict.text,
        "level": verdict.level.value,
        "reasons": list(verdict.reasons),
        "ready": verdict.is_ready,
        **fields,
        "unserved": view.unserved,
        "unroutable": [asdict(each) for each in running_workers.unroutable(view)],
        "queues": {load.queue: load.waiting for load in view.loads},
        "states": {state.value: number for state, number in view.states.items()},
    }
