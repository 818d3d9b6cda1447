"""How far are we? A bar on a terminal, a line now and then elsewhere, nothing for what is done in a moment."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from poller.cli.output import render

T = TypeVar("T")

QUIET_S = 1.0
LINE_EVERY_S = 10.0


def track(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """Pass items through, showing progress on stderr once it takes longer than a second."""
    if sys.stderr.isatty() and not render.accessible():
        yield from _bar(items, total, what)
    else:
        yield from _lines(items, total, what)


def _lines(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    said = time.monotonic()
    for done, item in enumerate(items):
        if time.monotonic() - said > LINE_EVERY_S:
            said = time.monotonic()
            render.note(f"{what}: {done:,} of {total:,} ({100 * done // max(total, 1)} %)")
        yield item


def _bar(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    from rich.progress import Progress

    begin = time.monotonic()
    with Progress(console=render.console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total, visible=False)
        for done, item in enumerate(items):
            if done % 256 == 0:
                progress.update(task, completed=done, visible=time.monotonic() - begin > QUIET_S)
            yield item
