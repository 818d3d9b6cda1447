"""`poller breaker`: targets that are not polled; closes a breaker, or opens one by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from poller import bootstrap, errors
from poller.cli.actions import bulk_change
from poller.cli.actions.bulk_change import BulkOptions
from poller.cli.arguments import filter_options, since, target_arguments
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.arguments.option_group import expand_options
from poller.cli.arguments.target_arguments import (
    OptionalTargetWords,
    TargetWord,
)
from poller.cli.output import progress, render
from poller.cli.output.columns import (
    Fit,
    age_column,
    column,
    error_column,
    plain,
    target_column,
)
from poller.cli.output.render import Json, Limit
from poller.domain.inventory import target_filter
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.service.operations.breaker_actions import OpenBreakers
    from poller.service.operations.target_choice import Choice
    from poller.state.board.breakers import OpenBreaker

app = typer.Typer(
    no_args_is_help=True, help="Targets that are not polled: they keep failing, or by hand."
)

_COLUMNS = (
    target_column(),
    column("BREAKER", "breaker", fit=Fit.WHOLE),
    column("BY", "by", fit=Fit.WHOLE, spare=1),
    column("REASON", "reason", spare=4),
    age_column("FOR", "for_seconds"),
    column("FAILURES", "failures", right=True, fit=Fit.WHOLE, spare=2),
    column("TRIPS", "trips", right=True, fit=Fit.WHOLE, spare=3),
    age_column("NEXT POLL IN", "in_seconds"),
    error_column("LAST ERROR"),
)


@app.command("list")
def list_(limit: Limit = 50, as_json: Json = False) -> None:
    """List open breakers, those open the longest first."""
    from poller.cli.inventory.inventory_database import database
    from poller.service.operations import breaker_actions
    from poller.service.operations.breaker_actions import BreakersQuery

    def watch(scan: Iterable[OpenBreaker], expected: int) -> Iterable[OpenBreaker]:
        return progress.track(scan, expected, "reading breakers")

    services = bootstrap.services()
    database(services)
    actor = command_actor.of_command()
    found = breaker_actions.listing(services, actor, BreakersQuery(limit), watch)
    items = [asdict(each) for each in found.items]
    render.listing("poller.breaker.list/1", items, _COLUMNS, as_json, total=found.total)
    if not as_json:
        render.note(_totals(found))


@app.command("show")
def show(target: TargetWord, as_json: Json = False) -> None:
    """Show the breaker of each target of a device, open or closed."""
    from poller.service.operations import breaker_actions

    services = bootstrap.services()
    found = breaker_actions.show(services, _named(services, [target]))
    items = [asdict(each) for each in found]
    if as_json or len(items) > 1:
        render.listing("poller.breaker.show/1", items, _COLUMNS, as_json)
    else:
        render.record("poller.breaker.show/1", items[0], as_json)


@app.command("reset")
@expand_options
def reset(
    words: OptionalTargetWords = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    as_json: Json = False,
) -> None:
    """Close breakers and clear their failures: polled at the next slot.

    The result of a running poll wins.
    """
    from poller.service.operations import breaker_actions

    services = bootstrap.services()
    chosen, subject = _selected(services, words, selection, "poller breaker reset --help")
    if not _agreed("reset", chosen, words, bulk, as_json):
        return

    done = breaker_actions.reset(services, command_actor.of_command(), chosen, subject)
    item = asdict(done)
    for name in ("changed", "note"):
        item.pop(name)

    text = f"reset {formatting.counted(done.reset, 'breaker')}"
    if done.closed_already:
        text += f", {done.closed_already:,} closed already"

    render.changed(text, "poller.breaker.reset/1", item, as_json)
    render.warning(done.note)
    if done.site_dark and not as_json:
        held = formatting.counted(done.site_dark, "target")
        render.note(f"{held} of a dark site: polled when the site is back")

    breaker_actions.refuse_unsettled(done)


@app.command("open")
@expand_options
def open_(
    words: OptionalTargetWords = None,
    *,
    selection: FilterOptions,
    bulk: BulkOptions,
    for_: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="For how long, 1s to 30d.")
    ] = "30m",
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who look later.")] = "",
    as_json: Json = False,
) -> None:
    """Open breakers by hand: these targets are not polled until then, except by `poller poll`."""
    from poller.service.operations import breaker_actions
    from poller.service.operations.breaker_actions import Pause

    length_s = since.length_ms("--for", for_) / 1000
    if not breaker_actions.SHORTEST_S <= length_s <= breaker_actions.LONGEST_S:
        hint = "choose 1s to 30d; to stop for good: poller target edit DEVICE TARGET --disable"
        raise errors.InvalidInput(f"--for {for_} is out of bounds", hint=hint)
    pause = Pause(length_s, reason)
    pause.check()

    services = bootstrap.services()
    chosen, subject = _selected(services, words, selection, "poller breaker open --help")
    if not _agreed("open", chosen, words, bulk, as_json):
        return

    actor = command_actor.of_command()
    done = breaker_actions.open_by_hand(services, actor, chosen, pause, subject)
    item = asdict(done)
    del item["note"]
    text = f"opened {formatting.counted(done.opened, 'breaker')} until {plain(done.until)}"
    then = f"poller breaker reset {' '.join(words)}" if words else ""
    render.changed(text, "poller.breaker.open/1", item, as_json, then)
    render.warning(done.note)


def _named(services: Services, words: Sequence[str]) -> Choice:
    """The named targets by id. Raises NotFound."""
    from poller.cli.inventory.inventory_database import database
    from poller.service.operations import target_choice

    database(services)
    pairs = target_arguments.named_pairs(words)
    return target_choice.named(services, command_actor.of_command(), pairs)


def _selected(
    services: Services, words: Sequence[str] | None, selection: FilterOptions, hint: str
) -> tuple[Choice, str]:
    """The named targets, or those that match a filter, and the text that selected them.

    Raises NotFound.
    """
    from poller.service.operations import target_choice

    filter_options.refuse_both(words, not selection.is_empty, hint)
    if words:
        return _named(services, words), " ".join(words)
    wanted = selection.parse()
    found = target_choice.matching(services, command_actor.of_command(), wanted)
    return found, target_filter.text(wanted)


def _agreed(
    verb: str, chosen: Choice, words: Sequence[str] | None, bulk: BulkOptions, as_json: bool
) -> bool:
    """Whether to go on. Named targets need no confirmation, those that match a filter do."""
    if words and not bulk.dry_run and bulk.number is None:
        return True
    names = [each.full_name for each in chosen.values()]
    action = f"{verb} the {formatting.counted(len(chosen), 'breaker')} of these targets"
    return bulk_change.agreed(action, names, bulk, as_json)


def _totals(found: OpenBreakers) -> str:
    """`12 breakers open, 2 of them by hand; --limit 12 shows all`"""
    if not found.total:
        return "no breaker is open"

    text = f"{formatting.counted(found.total, 'breaker')} open"
    if found.by_hand:
        text += f", {found.by_hand:,} of them by hand"

    if found.total > len(found.items):
        text += f"; --limit {found.total} shows all"

    return text
