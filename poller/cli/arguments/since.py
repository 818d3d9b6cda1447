"""How far back does a question go? `--since 2h`, for the commands that look at the past."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from poller import errors
from poller.domain.inventory import duration

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DURATION", help="Only what is younger: 90s, 2h, 1d."),
]


def instant_ms(since: str | None) -> int:
    """The instant so long ago, by this machine's clock; 0 when nothing was said."""
    if since is None:
        return 0
    return max(0, time.time_ns() // 1_000_000 - length_ms("--since", since))


def length_ms(option: str, text: str) -> int:
    """A duration; the error names the option."""
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"{option}: {error.message}", hint=error.hint) from None
