"""Are you sure? Asked on a terminal only; without one nothing is asked and nothing is done unless `--yes`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from poller import errors

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Number = Annotated[
    int | None,
    typer.Option(
        "--confirm",
        metavar="N",
        help="Do not ask: yes, so many. Needed instead of --yes beyond 1,000.",
    ),
]

#: Above this the number has to be typed: a `y` is given too easily.
MANY = 1_000


def confirm(what: str, count: int, yes: bool) -> None:
    """Return when the operator agrees that `what` (a phrase: "remove 3 devices") be done."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise errors.NotConfirmed(
            f"this would {what}; stdin is not a terminal, so it was not asked and not done",
            hint="the same command with --yes",
        )
    if count > MANY:
        answer = typer.prompt(
            f"This would {what}. Type {count} to go on", default="", show_default=False
        )
        agreed = answer.strip() == str(count)
    else:
        agreed = typer.confirm(f"This would {what}. Go on?")
    if not agreed:
        raise errors.NotConfirmed("not confirmed; nothing was done")


def confirm_counted(what: str, count: int, yes: bool, number: int | None) -> None:
    """The same for what can hit a whole fleet: beyond 1,000 only the right number will do, also without a terminal."""
    if number is not None and number != count:
        raise errors.NotConfirmed(
            f"this would {what}, not {number:,}; nothing was done", hint=f"--confirm {count}"
        )
    if count > MANY and number is None and (yes or not sys.stdin.isatty()):
        raise errors.NotConfirmed(
            f"this would {what}; nothing was done", hint=f"the same command with --confirm {count}"
        )
    confirm(what, count, yes or number is not None)
