"""The selection of dead letters: by target, by reason, or by the filter of all commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from poller import errors
from poller.cli.arguments import completion, target_arguments
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.inventory import inventory_database
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory.did_you_mean import nearest

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named, Wanted

_SELECT_HINT = (
    "add DEVICE/TARGET, --reason auth_failed or --all; poller deadletter list shows what there is"
)


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """The options of dead letters alone. A reason says why a target is parked; an error code says
    how its last poll failed, and is an option of every filter.
    """

    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            metavar="REASON",
            help=f"Only parked for this reason: {', '.join(Reason)}. For an error: --code.",
        ),
    ] = ""
    device: Annotated[
        str,
        typer.Option(
            "--device",
            metavar="DEVICE[/TARGET]",
            help="Only of this device.",
            autocompletion=completion.devices,
        ),
    ] = ""

    @property
    def is_empty(self) -> bool:
        return self == LetterFilter()

    def checked_reason(self) -> str:
        """The reason, empty for any. Raises InvalidInput; an error code gets a hint to --code."""
        if not self.reason or self.reason in tuple(Reason):
            return self.reason

        near = nearest(self.reason, tuple(Reason))
        if self.reason in error_codes.TABLE:
            hint = f"it is an error code: --code {self.reason}"
        elif near:
            hint = f"did you mean {near}?"
        else:
            hint = "one of " + ", ".join(Reason)
        raise errors.InvalidInput(f'a dead letter has no reason "{self.reason}"', hint=hint)


def query(services: Services, letters: LetterFilter, targets: FilterOptions) -> Wanted:
    """Both filters in terms of SQL.

    Raises InvalidInput for an unknown word, NotFound for an unknown device, site or collector.
    """
    from poller.db.record.dead_letter_rows import Wanted
    from poller.service import target_selection

    reason = letters.checked_reason()
    wanted = targets.parse()
    codes = wanted.codes
    others = replace(wanted, codes=())  # the letter's own code decides, not that of the last poll

    ids: set[int] | None = None
    if not others.is_empty:
        ids = {target.id for target in target_selection.select_targets(services, others)}
    if letters.device:
        engine = inventory_database.database(services)
        named = set(target_arguments.targets(engine, [letters.device]))
        ids = named if ids is None else ids & named

    return Wanted(reason=reason, codes=codes, ids=ids)


def selected_letters(
    services: Services,
    words: Sequence[str] | None,
    letters: LetterFilter,
    targets: FilterOptions,
    every: bool,
) -> list[Named]:
    """The letters of named targets, or those that match the filters, or all of them with `--all`.

    Raises InvalidInput unless exactly one of the three is used, NotFound if no letter is selected.
    """
    from poller.db.record import dead_letter_rows

    is_filtered = not (letters.is_empty and targets.is_empty)
    selections = [bool(words), is_filtered, every]
    if sum(selections) != 1:
        raise errors.InvalidInput(
            "say which: names, filters or --all, and only one of these", hint=_SELECT_HINT
        )

    engine = inventory_database.database(services)
    if words:
        found = letters_of(services, list(target_arguments.targets(engine, words)))
    else:
        found = dead_letter_rows.listing(engine, query(services, letters, targets))

    if not found:
        raise errors.NotFound("no dead letter matches", hint="poller deadletter list")

    return found


def letters_of(services: Services, target_ids: Sequence[int]) -> list[Named]:
    """The letters of these targets."""
    from poller.db.record import dead_letter_rows
    from poller.db.record.dead_letter_rows import Wanted

    engine = inventory_database.database(services)
    return dead_letter_rows.listing(engine, Wanted(ids=target_ids))
