"""`poller deadletter`: targets that need a person, in groups of one cause; requeue or drop them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap
from poller.cli.actions import letter_requeue
from poller.cli.arguments import letter_filter, target_arguments
from poller.cli.arguments.confirm import DryRun, Number, Yes, confirm_counted
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.letter_filter import LetterFilter
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import OptionalTargetWords, TargetWord
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import (
    Fit,
    age_column,
    column,
    error_column,
    target_column,
)
from poller.cli.output.render import Json, Limit
from poller.domain.failures.dead_letter import GroupBy
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.db.record.dead_letter_rows import Named

#: Number of letters that a plan or a question names.
SAMPLES = 3

app = typer.Typer(
    no_args_is_help=True,
    help="Targets that need a person. They are polled at a slow rate until they are requeued.",
)

All = Annotated[bool, typer.Option("--all", help="Every dead letter there is.")]

_CAUSE = (
    column("REASON", "reason", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    column("COLLECTOR", "collector"),
)
#: The columns of what the letters of a group share.
_SHARED = {
    GroupBy.CAUSE: _CAUSE,
    GroupBy.TEXT: (*_CAUSE, column("ERROR", "message", fit=Fit.REST)),
    GroupBy.COLLECTOR: (column("COLLECTOR", "collector"),),
    GroupBy.SITE: (column("SITE", "site"),),
    GroupBy.DEVICE: (column("DEVICE", "device"),),
}
_GROUP_COLUMNS = (
    column("LETTERS", "letters", right=True),
    column("DEVICES", "devices", right=True),
    age_column("FIRST", "first_seconds", tail=" ago", fit=Fit.CUT),
    age_column("LAST", "last_seconds", tail=" ago", fit=Fit.CUT),
)
_COLUMNS = (
    target_column(),
    column("REASON", "reason", fit=Fit.WHOLE),
    age_column("FOR", "parked_seconds"),
    column("TRIES", "attempts", right=True, fit=Fit.WHOLE, spare=2),
    age_column("NEXT TRY IN", "next_try_seconds", spare=1),
    error_column("LAST ERROR"),
)


@app.command("list")
@expand_options
def list_(
    letters: LetterFilter,
    targets: FilterOptions,
    by: Annotated[
        GroupBy, typer.Option("--group", help="What the letters of a group share.")
    ] = GroupBy.CAUSE,
    limit: Limit = 50,
    as_json: Json = False,
) -> None:
    """List groups of one cause, then the dead letters, the oldest first."""
    from poller.service.operations import letter_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    wanted = letter_filter.query(letters, targets)
    groups = letter_actions.groups(services, actor, wanted, by)
    found = letter_actions.page(services, actor, wanted, limit)
    total = sum(group.letters for group in groups)
    group_items = [asdict(group) for group in groups]
    items = [asdict(letter) for letter in found.items]

    if as_json:
        body = {"groups": group_items, "items": items, "total": total}
        render.document("poller.deadletter.list/1", body)
        return

    if not total:
        is_filtered = not (letters.is_empty and targets.is_empty)
        render.note("no dead letter matches" if is_filtered else "no dead letter")
        return

    render.listing("", group_items, (*_SHARED[by], *_GROUP_COLUMNS), as_json=False)
    render.echo("")
    render.listing("", items, _COLUMNS, as_json=False)
    letters_text = formatting.counted(total, "dead letter")
    groups_text = formatting.counted(len(groups), "group")
    more = f"; --limit {total} shows all" if total > len(items) else ""
    render.note(f"{letters_text} in {groups_text}{more}")


@app.command("show")
def show(target: TargetWord, as_json: Json = False) -> None:
    """Show all fields of a dead letter, and what to do about it."""
    from poller import event_publisher
    from poller.service.operations import letter_actions, shown_letters

    services = bootstrap.services()
    inventory_database.database(services)
    pairs = target_arguments.named_pairs([target])
    letters = letter_actions.of_names(services, command_actor.of_command(), pairs)
    now_ms = event_publisher.now_ms()
    items = []
    for named in letters:
        letter = asdict(shown_letters.letter(named, now_ms))
        items.append({**letter, **shown_letters.advice(named)})
    schema = "poller.deadletter.show/1"

    if as_json or len(items) > 1:
        columns = (*_COLUMNS, column("WHAT TO DO", "hint", fit=Fit.WRAP))
        render.listing(schema, items, columns, as_json)
    else:
        render.record(schema, items[0], as_json)


@app.command("requeue")
@expand_options
def requeue(
    letters: LetterFilter,
    targets: FilterOptions,
    words: OptionalTargetWords = None,
    every: All = False,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the results.")
    ] = 0.0,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Poll dead letters now, before routine polls; above 64 they are spread, 64 a second.

    A success clears one.
    """
    from poller.service.operations import letter_actions

    services = bootstrap.services()
    selected, subject = letter_filter.selected_letters(services, words, letters, targets, every)

    if dry_run:
        spread = letter_actions.spread_text(len(selected))
        _print_plan(f"would requeue {spread}", selected, as_json)
        return

    done = letter_actions.requeue(services, command_actor.of_command(), selected, subject)
    item = letter_requeue.with_results(services, done, wait_s)
    letter_requeue.print_requeued(item, "poller.deadletter.requeue/1", as_json)
    render.warning(done.note)
    if not item["requeued"]:
        raise typer.Exit(1)

    letter_requeue.exit_unless_good(item)


@app.command("drop")
@expand_options
def drop(
    letters: LetterFilter,
    targets: FilterOptions,
    words: OptionalTargetWords = None,
    every: All = False,
    yes: Yes = False,
    number: Number = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Disable targets and remove their dead letters.

    `poller target edit ... --enable` takes one back.
    """
    from poller.service.operations import letter_actions

    services = bootstrap.services()
    selected, subject = letter_filter.selected_letters(services, words, letters, targets, every)
    count = len(selected)

    if dry_run:
        counted = formatting.counted(count, "dead letter")
        _print_plan(f"would drop {counted} and disable as many targets", selected, as_json)
        return

    names = ", ".join(_sample_names(selected)) + (", ..." if count > SAMPLES else "")
    counted = formatting.counted(count, "target")
    action = f"disable {counted} ({names}) and drop as many dead letters"
    confirm_counted(action, count, yes, number)
    author, actor = inventory_database.author(), command_actor.of_command()
    done = letter_actions.drop(services, author, actor, selected, subject)
    text = (
        f"dropped {formatting.counted(done.dropped, 'dead letter')}; as many targets are disabled"
    )
    first = selected[0]
    back = f"poller target edit {first.device} {first.target} --enable   (to take one back)"
    render.changed(text, "poller.deadletter.drop/1", {"dropped": done.dropped}, as_json, back)
    render.warning(done.note)


def _print_plan(text: str, letters: Sequence[Named], as_json: bool) -> None:
    """Print what a dry run would do, with the names of the first letters."""
    samples = _sample_names(letters)
    item = {"dry_run": True, "letters": len(letters), "samples": samples}
    render.changed(f"{text}: {', '.join(samples)}", "poller.deadletter.plan/1", item, as_json)


def _sample_names(letters: Sequence[Named]) -> list[str]:
    """The names of the first letters, as `DEVICE/TARGET`."""
    return [f"{named.device}/{named.target}" for named in letters[:SAMPLES]]
