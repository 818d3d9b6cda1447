"""Progress of long work: a bar on a terminal, a line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Iterable, Iterator
from typing import TypeVar

from poller.cli.output import render

T = TypeVar("T")

#: Work that takes less than this shows no bar.
QUIET_S = 1.0
LINE_EVERY_S = 10.0
#: Number of items between two updates of the bar.
STEP = 256


def track(
    items: Iterable[T], total: int, activity: str, step: int = STEP
) -> Generator[T, None, None]:
    """Pass the items through and show on stderr how many of `total` have passed.

    `step`: items between two updates of the bar.
    """
    if sys.stderr.isatty() and not render.accessible():
        yield from _bar(items, total, activity, step)
    else:
        yield from _lines(items, total, activity)


def _lines(items: Iterable[T], total: int, activity: str) -> Iterator[T]:
    """Print a line every ten seconds."""
    printed_mono = time.monotonic()
    for done, item in enumerate(items):
        now = time.monotonic()
        if now - printed_mono > LINE_EVERY_S:
            printed_mono = now
            percent = 100 * done // max(total, 1)
            render.note(f"{activity}: {done:,} of {total:,} ({percent} %)")
        yield item


def _bar(items: Iterable[T], total: int, activity: str, step: int) -> Iterator[T]:
    """Show a bar once the work takes longer than a second."""
    from rich.progress import Progress

    started_mono = time.monotonic()
    with Progress(console=render.console(stderr=True), transient=True) as progress:
        task = progress.add_task(activity, total=total, visible=False)
        for done, item in enumerate(items):
            if done % step == 0:
                visible = time.monotonic() - started_mono > QUIET_S
                progress.update(task, completed=done, visible=visible)
            yield item
