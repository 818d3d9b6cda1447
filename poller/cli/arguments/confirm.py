"""Confirmation of a change: asked on a terminal; without a terminal `--yes` is required."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from poller import errors
from poller.service.bulk_confirmation import MANY

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

Number = Annotated[
    int | None,
    typer.Option(
        "--confirm",
        metavar="N",
        help="Confirm this number without a question. Required instead of --yes above 1,000.",
    ),
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")]


def confirm(action: str, count: int, yes: bool) -> None:
    """Return if the operator agrees to the action (a phrase: "remove 3 devices").

    Raises NotConfirmed.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise errors.NotConfirmed(
            f"this would {action}; stdin is not a terminal, so it was not asked and not done",
            hint="the same command with --yes",
        )
    if count > MANY:
        question = f"This would {action}. Type {count} to go on"
        typed = typer.prompt(question, default="", show_default=False)
        agreed = typed.strip() == str(count)
    else:
        agreed = typer.confirm(f"This would {action}. Go on?")

    if not agreed:
        raise errors.NotConfirmed("not confirmed; nothing was done")


def confirm_counted(action: str, count: int, yes: bool, number: int | None) -> None:
    """Confirm an action on many items: above 1,000 only the right number is accepted.

    Raises NotConfirmed.
    """
    if number is not None and number != count:
        raise errors.NotConfirmed(
            f"this would {action}, not {number:,}; nothing was done", hint=f"--confirm {count}"
        )

    unattended = yes or not sys.stdin.isatty()
    if count > MANY and number is None and unattended:
        raise errors.NotConfirmed(
            f"this would {action}; nothing was done",
            hint=f"the same command with --confirm {count}",
        )

    confirm(action, count, yes or number is not None)
