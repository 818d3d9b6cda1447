"""`poller jobs`: periodic work that is not a poll: its state, its runs, and runs by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change, job_follow
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import completion, job_arguments
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.option_group import expand_options
from poller.cli.command_tree import Listing
from poller.cli.inventory import inventory_database
from poller.cli.output import job_tables, render
from poller.cli.output.render import Json
from poller.domain.inventory.did_you_mean import refuse_unknown
from poller.domain.jobs import plan_text
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import Status
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.access.actor import Actor
    from poller.domain.record.overview import Worker
    from poller.service.job_actions import Change

#: More jobs than this are not named in the command that takes a change back.
FEW = 5

app = typer.Typer(cls=Listing, help="Periodic work: what runs when, what failed, and runs by hand.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The job's name.", autocompletion=completion.jobs)
]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME...]", help="The jobs' names.", autocompletion=completion.jobs),
]
OptionalName = Annotated[
    str | None,
    typer.Argument(metavar="[NAME]", help="Only this job.", autocompletion=completion.jobs),
]
All = Annotated[bool, typer.Option("--all", help="All jobs; asks for confirmation.")]
Scope = Annotated[
    str | None,
    typer.Option("--scope", metavar="KIND:ID", help="Only of this scope, such as site:ams."),
]


@app.command("list")
def list_(
    name: OptionalName = None,
    state: Annotated[
        list[JobState] | None, typer.Option(help="Only jobs in this state. Repeat for more.")
    ] = None,
    gone: Annotated[
        bool, typer.Option("--gone", help="Also jobs that their packages no longer have.")
    ] = False,
    as_json: Json = False,
) -> None:
    """List jobs with their schedule, next plan, last run and holder, and broken ones."""
    from poller.presentation import job_json, job_states

    services = bootstrap.services()
    stored = job_states.read(inventory_database.database(services), gone)
    workers = _workers(services)
    found = job_states.judge(stored, workers).jobs
    unusable = job_states.broken_jobs(workers or (), services.jobs.broken)
    broken = [asdict(each) for each in unusable if name in (None, each.name)]
    if name is not None:
        known = [each.name for each in found] + [each["name"] for each in broken]
        refuse_unknown("job", name, known, "poller jobs list")
    items = []
    for each in found:
        if name in (None, each.name) and (not state or each.state in state):
            items.append(job_json.item(each))

    more = {"total": len(found), "broken": broken}
    render.listing("poller.jobs/1", items, job_tables.JOBS, as_json, **more)
    if as_json:
        return
    if broken:
        render.echo("")
        render.listing("poller.jobs/1", broken, job_tables.BROKEN, as_json=False)
    _explain_list(len(items) + len(broken), len(found))


@app.command("show")
def show(name: Name, as_json: Json = False) -> None:
    """Show one job: its terms, workers, next plans, scopes and last runs."""
    from poller.service import job_listing

    services = bootstrap.services()
    inventory_database.database(services)
    with job_arguments.broken_explained(services, name):
        found = job_listing.show(services, name, _workers(services))
    document = job_listing.document(found)
    if as_json:
        render.document("poller.jobs.show/1", document)
    else:
        job_tables.show(found, document)


@app.command("run")
def run(
    name: Name,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="KIND:ID", help="Of a job with scopes: for which of them."),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="TIME",
            help="Repeat this failed plan, or run it if it was missed: 2026-11-18T02:00:00Z.",
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it ends.")] = True,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Wait no longer than this: 90s, 10m.", min=0),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a job now, or one plan of it again, and wait for its end.

    Exit codes: 1 when it failed, 124 when --timeout ran out. The run goes on after a time-out.
    """
    from poller.service import job_actions

    patience_s = job_arguments.timeout_s(timeout, wait)
    plan_ms = None if plan is None else plan_text.parse_instant_ms("--plan", plan)
    wanted = None if scope is None else plan_text.parse_scope("--scope", scope)
    services = bootstrap.services()
    inventory_database.database(services)
    with job_arguments.broken_explained(services, name):
        started = job_actions.start(services, command_actor.of_command(), name, wanted, plan_ms)
    render.warning(started.note)
    if started.job.paused_ms is not None:
        render.note(f"note: job {name} is paused by {started.job.paused_by}; this run is by hand")

    if wait:
        job_follow.until_end(services, started, patience_s, as_json)
    else:
        job_follow.sent(started, as_json)


@app.command("history")
def history(
    name: OptionalName = None,
    status: Annotated[
        Status | None, typer.Option(case_sensitive=False, help="Only runs with this outcome.")
    ] = None,
    scope: Scope = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum number of rows.")] = 20,
    before: Annotated[
        int | None, typer.Option(min=1, metavar="ID", help="Only older rows than this one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the runs of jobs, the newest first."""
    from poller.service import job_listing
    from poller.service.job_listing import RunsQuery

    wanted = None if scope is None else plan_text.parse_scope("--scope", scope)
    if wanted and name is None:
        raise errors.InvalidInput("--scope: of which job?", hint="poller jobs history NAME --scope")
    services = bootstrap.services()
    inventory_database.database(services)
    page = job_listing.runs(services, RunsQuery(name or "", status, limit, before, wanted))

    items = page.items()
    render.listing("poller.jobs.history/1", items, job_tables.RUNS, as_json, next=page.next_id)
    if as_json:
        return
    if not items:
        render.note("no run is on record, or nothing matches")
    elif page.next_id is not None:
        shown = formatting.counted(limit, "run")
        render.note(f"{shown}; older ones with --before {page.next_id}")


@app.command("pause")
@expand_options
def pause(
    names: Names = None, *, all_: All = False, bulk: BulkOptions, as_json: Json = False
) -> None:
    """Pause jobs: no plan of theirs is started until they are resumed. Running ones go on."""
    from poller.service import job_actions

    words = _Words("pause", "paused", "paused already", help="poller jobs pause --help")
    _switch(words, job_actions.pause, names, all_, bulk, as_json)


@app.command("resume")
@expand_options
def resume(
    names: Names = None, *, all_: All = False, bulk: BulkOptions, as_json: Json = False
) -> None:
    """Resume paused jobs. Plans of the pause follow as the job's catch-up says."""
    from poller.service import job_actions

    words = _Words("resume", "resumed", "not paused", help="poller jobs resume --help")
    _switch(words, job_actions.resume, names, all_, bulk, as_json)


class _Words(NamedTuple):
    """The words of pause or resume; `others` is for jobs that were so before."""

    verb: str
    done: str
    others: str
    help: str


def _switch(
    words: _Words,
    change: Callable[[Services, Sequence[str], Actor], Change],
    names: Sequence[str] | None,
    is_all: bool,
    bulk: BulkOptions,
    as_json: bool,
) -> None:
    """Pause or resume jobs, and print what was changed."""
    services = bootstrap.services()
    chosen = _chosen(services, names, is_all, words.help)
    if (is_all or bulk.dry_run) and not _agreed(words.verb, chosen, bulk, as_json):
        return
    actor = command_actor.of_command()
    made = change(services, chosen, actor)

    changed = list(made.names)
    others = len(chosen) - len(changed)
    item = {words.done: changed, words.others.replace(" ", "_"): others, "by": actor.name}
    undo = _undo(changed) if words.verb == "pause" else ""
    schema = f"poller.jobs.{words.verb}/1"
    render.changed(_changed_text(words, changed, others), schema, item, as_json, undo)
    _note_unannounced(made)


@app.command("forget")
def forget(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a job that no worker has any more from the list. Its runs stay until pruned."""
    from poller.service import job_actions

    services = bootstrap.services()
    inventory_database.database(services)
    job_actions.refuse_served(services, name)
    confirm(f"forget job {name}", 1, yes)
    job_actions.forget(services, command_actor.of_command(), name)
    render.changed(f"forgot job {name}", "poller.jobs.forget/1", {"forgotten": name}, as_json)


def _workers(services: Services) -> Sequence[Worker] | None:
    """The living workers; without Redis a note, and None."""
    from poller.service import job_actions

    try:
        return job_actions.living(services)
    except errors.StoreError as error:
        render.note(f"note: which workers run is not known: {error.message}")
        return None


def _explain_list(shown: int, total: int) -> None:
    if not total:
        render.note("no job is known yet; a worker announces its jobs when it starts")
    elif not shown:
        render.note(f"none of {formatting.counted(total, 'job')} is in that state")


def _chosen(
    services: Services, names: Sequence[str] | None, is_all: bool, help_command: str
) -> list[str]:
    """The named jobs, or all of them. Raises InvalidInput unless it is one of the two."""
    from poller.service import job_actions

    if bool(names) == is_all:
        which = "names and --all do not go together" if names else "which jobs?"
        raise errors.InvalidInput(which, hint=f"give names, or --all: {help_command}")
    inventory_database.database(services)
    return list(dict.fromkeys(names)) if names else job_actions.names(services)


def _agreed(verb: str, names: Sequence[str], bulk: BulkOptions, as_json: bool) -> bool:
    action = f"{verb} {formatting.counted(len(names), 'job')}"
    return bulk_change.agreed(action, names, bulk, as_json)


def _changed_text(words: _Words, changed: Sequence[str], others: int) -> str:
    """`paused nightly`, `resumed 12 jobs; 3 not paused`."""
    what = changed[0] if len(changed) == 1 else formatting.counted(len(changed), "job")
    text = f"{words.done} {what}"
    return f"{text}; {formatting.exact(others)} {words.others}" if others else text


def _note_unannounced(change: Change) -> None:
    if not change.is_announced:
        render.note(
            "note: the scheduler was not notified (Redis is not reachable); "
            "it will read the change when it runs"
        )


def _undo(names: Sequence[str]) -> str:
    """The command that takes a pause of a few jobs back."""
    return f"poller jobs resume {' '.join(names)}" if 0 < len(names) <= FEW else ""
