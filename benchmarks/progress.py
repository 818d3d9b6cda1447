"""Progress on stderr: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from poller.cli.output import render

LINE_EVERY_S = 10.0

Show = Callable[[float], None]


def step(text: str) -> None:
    print(f"   {text}", file=sys.stderr, flush=True)


def follow(
    what: str,
    total: float,
    done: Callable[[], float],
    within_s: float = math.inf,
    every_s: float = 0.1,
) -> bool:
    """Wait until `done` reaches the total, and show progress. Returns False on a time-out."""
    began = time.monotonic()
    with shown(what, total) as show:
        while (now := done()) < total:
            if time.monotonic() - began > within_s:
                return False
            show(now)
            time.sleep(every_s)
    return True


def wait(what: str, seconds: float) -> None:
    """Wait for some seconds, and show progress."""
    until = time.time() + seconds
    follow(what, seconds, lambda: seconds - max(0.0, until - time.time()))


@contextmanager
def shown(what: str, total: float) -> Iterator[Show]:
    """Yield a function to which the caller reports its progress."""
    began = time.monotonic()
    if sys.stderr.isatty() and not render.accessible():
        with _bar(what, total) as show:
            yield show
    else:
        step(f"{what} ...")
        yield _lines(what, total)
    step(f"{what}: {time.monotonic() - began:,.1f} s")


@contextmanager
def _bar(what: str, total: float) -> Iterator[Show]:
    from rich.progress import Progress

    with Progress(console=render.console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"   {what}", total=total)
        yield lambda done: progress.update(task, completed=done)


def _lines(what: str, total: float) -> Show:
    shown_mono = time.monotonic()

    def show(done: float) -> None:
        nonlocal shown_mono
        if time.monotonic() - shown_mono > LINE_EVERY_S:
            shown_mono = time.monotonic()
            step(f"{what}: {100 * done / total:.0f} %")

    return show
