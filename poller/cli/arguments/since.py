"""Durations on the command line: `--since 2h` and other options that take one."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from poller import errors
from poller.domain.inventory import duration

Since = Annotated[
    str | None,
    typer.Option("--since", metavar="DURATION", help="Only newer than this: 90s, 2h, 1d."),
]


def instant_ms(since: str | None) -> int:
    """The instant `since` before now, by this machine's clock; 0 for None."""
    if since is None:
        return 0
    now_ms = time.time_ns() // 1_000_000
    return max(0, now_ms - length_ms("--since", since))


def length_ms(option: str, text: str) -> int:
    """A duration in milliseconds. Raises InvalidInput, which names the option."""
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"{option}: {error.message}", hint=error.hint) from None
