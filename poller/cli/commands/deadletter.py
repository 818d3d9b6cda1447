"""`poller deadletter`: targets that need a person, in groups of one cause; requeue or drop them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
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
    instant,
    target_column,
)
from poller.cli.output.render import Json, Limit
from poller.domain.failures import error_codes
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.db.record.dead_letter_rows import Group, Named

#: Number of letters that a plan or a question names.
SAMPLES = 3

app = typer.Typer(
    no_args_is_help=True,
    help="Targets that need a person. They are polled at a slow rate until they are requeued.",
)

All = Annotated[bool, typer.Option("--all", help="Every dead letter there is.")]

_GROUP_COLUMNS = (
    column("REASON", "reason", fit=Fit.WHOLE),
    column("CODE", "error_code", fit=Fit.WHOLE),
    column("COLLECTOR", "collector"),
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
    letters: LetterFilter, targets: FilterOptions, limit: Limit = 50, as_json: Json = False
) -> None:
    """List groups of one cause, then the dead letters, the oldest first."""
    from poller.db.record import dead_letter_rows

    services = bootstrap.services()
    engine = inventory_database.database(services)
    wanted = letter_filter.query(services, letters, targets)
    groups = dead_letter_rows.groups(engine, wanted)
    found = dead_letter_rows.listing(engine, wanted, limit)
    now_ms = _now_ms()
    total = sum(group.letters for group in groups)
    group_items = [_group_item(group, now_ms) for group in groups]
    items = [_item(named, now_ms) for named in found]

    if as_json:
        body = {"groups": group_items, "items": items, "total": total}
        render.document("poller.deadletter.list/1", body)
        return

    if not total:
        is_filtered = not (letters.is_empty and targets.is_empty)
        render.note("no dead letter matches" if is_filtered else "no dead letter")
        return

    render.listing("", group_items, _GROUP_COLUMNS, as_json=False)
    render.echo("")
    render.listing("", items, _COLUMNS, as_json=False)
    letters_text = formatting.counted(total, "dead letter")
    groups_text = formatting.counted(len(groups), "group")
    more = f"; --limit {total} shows all" if total > len(items) else ""
    render.note(f"{letters_text} in {groups_text}{more}")


@app.command("show")
def show(target: TargetWord, as_json: Json = False) -> None:
    """Show all fields of a dead letter, and what to do about it."""
    services = bootstrap.services()
    targets = target_arguments.targets(inventory_database.database(services), [target])
    letters = letter_filter.letters_of(services, list(targets))

    if not letters:
        raise errors.NotFound(f"{target} is no dead letter", hint=f"poller breaker show {target}")

    now_ms = _now_ms()
    items = [{**_item(named, now_ms), **_explanation(named)} for named in letters]
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
    services = bootstrap.services()
    selected = letter_filter.selected_letters(services, words, letters, targets, every)

    if dry_run:
        spread = letter_requeue.spread_text(len(selected))
        _print_plan(f"would requeue {spread}", selected, as_json)
        return

    item = letter_requeue.requeue(services, selected, wait_s)
    letter_requeue.print_requeued(item, "poller.deadletter.requeue/1", as_json)
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
    services = bootstrap.services()
    engine = inventory_database.database(services)
    selected = letter_filter.selected_letters(services, words, letters, targets, every)
    count = len(selected)

    if dry_run:
        counted = formatting.counted(count, "dead letter")
        _print_plan(f"would drop {counted} and disable as many targets", selected, as_json)
        return

    names = ", ".join(_sample_names(selected)) + (", ..." if count > SAMPLES else "")
    counted = formatting.counted(count, "target")
    action = f"disable {counted} ({names}) and drop as many dead letters"
    confirm_counted(action, count, yes, number)
    dropped = letter_requeue.drop(services, engine, selected)
    text = f"dropped {formatting.counted(dropped, 'dead letter')}; as many targets are disabled"
    first = selected[0]
    back = f"poller target edit {first.device} {first.target} --enable   (to take one back)"
    render.changed(text, "poller.deadletter.drop/1", {"dropped": dropped}, as_json, back)


def _print_plan(text: str, letters: Sequence[Named], as_json: bool) -> None:
    """Print what a dry run would do, with the names of the first letters."""
    samples = _sample_names(letters)
    item = {"dry_run": True, "letters": len(letters), "samples": samples}
    render.changed(f"{text}: {', '.join(samples)}", "poller.deadletter.plan/1", item, as_json)


def _sample_names(letters: Sequence[Named]) -> list[str]:
    """The names of the first letters, as `DEVICE/TARGET`."""
    return [f"{named.device}/{named.target}" for named in letters[:SAMPLES]]


def _explanation(named: Named) -> dict[str, str]:
    """The meaning and the hint of the letter's error code."""
    row = error_codes.TABLE.get(named.letter.error_code)
    if row is None:
        return {"meaning": "", "hint": ""}
    return {"meaning": row.meaning, "hint": row.hint}


def _item(named: Named, now_ms: int) -> dict[str, Any]:
    letter = named.letter
    return {
        "target_id": letter.target_id,
        "device": named.device,
        "target": named.target,
        "site": named.site,
        "collector": named.collector,
        "reason": letter.reason.value if letter.reason else "",
        "error_code": letter.error_code,
        "category": error_codes.category_of(letter.error_code),
        "message": letter.message,
        "first_failure": instant(letter.first_ms),
        "last_failure": instant(letter.last_ms),
        "parked": instant(letter.parked_ms),
        "parked_seconds": max(0, now_ms - letter.parked_ms) // 1000,
        "attempts": letter.attempts,
        "next_try": instant(letter.next_ms),
        "next_try_seconds": max(0, letter.next_ms - now_ms) // 1000,
    }


def _group_item(group: Group, now_ms: int) -> dict[str, Any]:
    return {
        "reason": group.reason,
        "error_code": group.error_code,
        "category": error_codes.category_of(group.error_code),
        "collector": group.collector,
        "letters": group.letters,
        "devices": group.devices,
        "first_failure": instant(group.first_ms),
        "last_failure": instant(group.last_ms),
        "first_seconds": max(0, now_ms - group.first_ms) // 1000,
        "last_seconds": max(0, now_ms - group.last_ms) // 1000,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
