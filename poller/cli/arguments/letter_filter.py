"""The selection of dead letters: by target, by reason, or by the filter of all commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from poller import errors
from poller.cli.arguments import completion, target_arguments
from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.inventory import inventory_database
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory.did_you_mean import nearest
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.db.record.dead_letter_rows import Named
    from poller.service.operations.letter_actions import LetterQuery

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
    message: Annotated[
        str,
        typer.Option("--message", metavar="TEXT", help="Only with exactly this text of the error."),
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


def query(letters: LetterFilter, targets: FilterOptions) -> LetterQuery:
    """Both filters as one query. Raises InvalidInput for an unknown word."""
    from poller.service.operations.letter_actions import LetterQuery

    named = target_arguments.named_pairs([letters.device]) if letters.device else []
    return LetterQuery(letters.checked_reason(), targets.parse(), named, letters.message)


def selected_letters(
    services: Services,
    words: Sequence[str] | None,
    letters: LetterFilter,
    targets: FilterOptions,
    every: bool,
) -> tuple[list[Named], str]:
    """The letters of named targets, or those that match the filters, or all of them with `--all`;
    and the text that selected them.

    Raises InvalidInput unless exactly one of the three is used, NotFound if no letter is selected.
    """
    from poller.service.operations import letter_actions
    from poller.service.operations.letter_actions import LetterQuery

    is_filtered = not (letters.is_empty and targets.is_empty)
    selections = [bool(words), is_filtered, every]
    if sum(selections) != 1:
        raise errors.InvalidInput(
            "say which: names, filters or --all, and only one of these", hint=_SELECT_HINT
        )

    inventory_database.database(services)
    if words:
        wanted = LetterQuery(named=target_arguments.named_pairs(words))
    else:
        wanted = query(letters, targets)
    subject = " ".join(words) if words else letter_actions.text(wanted)
    found = letter_actions.selected(services, command_actor.of_command(), wanted)
    return found, subject
