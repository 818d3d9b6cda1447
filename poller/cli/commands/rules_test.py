"""`poller rules test`: when a rule would have fired."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import typer

from poller import bootstrap
from poller.cli.arguments import completion
from poller.cli.arguments.since import length_ms
from poller.cli.inventory import inventory_database
from poller.cli.output import progress, render
from poller.cli.output.columns import Column, Fit, Item, column, moment, plain
from poller.cli.output.render import Json
from poller.domain.inventory import target_filter
from poller.presentation import formatting
from poller.presentation.alerts import rule_items
from poller.service import command_actor

T = TypeVar("T")


def _ended(item: Item) -> str:
    return plain(item["ended_at"]) or "still open"


_COLUMNS = (
    moment("WOULD FIRE", "fired_at"),
    Column("END", _ended, fit=Fit.WHOLE),
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("SERIES", "series", spare=1),
    column("TEXT", "text", fit=Fit.REST),
)


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="RULE", help="The rule's name.", autocompletion=completion.rules),
    ],
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="How far back: 12h, 7d.")
    ] = "7d",
    where: Annotated[
        str, typer.Option("--where", metavar="FILTER", help="Only devices and targets that match.")
    ] = "",
    file: Annotated[
        str, typer.Option("--file", metavar="FILE", help="The rule of this file, not the stored.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Read history and say when a rule would have fired. Nothing is saved or told."""
    from poller.service.alerts import rule_actions, rule_replay

    services = bootstrap.services()
    inventory_database.database(services)
    rule = rule_actions.chosen(services, command_actor.of_command(), name, file)
    now_ms = time.time_ns() // 1_000_000
    since_ms = max(0, now_ms - length_ms("--since", since))
    question = rule_replay.Question(rule, since_ms, now_ms, target_filter.parse(where))
    answer = rule_replay.ask(services, question, _with_progress)

    items: list[dict[str, Any]] = [
        rule_items.firing(each, rule_replay.text_of(rule, each)).model_dump()
        for each in answer.firings
    ]
    counts = {"rule": name, "looked_at": answer.looked_at, "of": answer.of, "notes": answer.notes}
    render.listing(rule_items.TEST_SCHEMA, items, _COLUMNS, as_json, **counts)
    if as_json:
        return
    times = formatting.counted(len(items), "time")
    looked_at = formatting.counted(answer.looked_at, answer.noun)
    render.note(f"{name} would have fired {times} in {since}; looked at {looked_at}")
    render.notes(answer.notes)


def _with_progress(found: Sequence[T]) -> Iterable[T]:
    return progress.track(found, len(found), "judging targets", step=1)
