"""Names and time-outs of `poller jobs` on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from poller import errors
from poller.cli.arguments import since

if TYPE_CHECKING:
    from poller.bootstrap import Services


@contextmanager
def broken_explained(services: Services, name: str) -> Iterator[None]:
    """An unknown job that is installed here but cannot be used is refused with the reason."""
    try:
        yield
    except errors.NotFound:
        installed = services.jobs
        if name not in installed.jobs and any(each.name == name for each in installed.broken):
            installed.get(name)
        raise


def timeout_s(text: str | None, wait: bool) -> float | None:
    """The patience in seconds; None for as long as it takes. Raises InvalidInput."""
    if text is None:
        return None
    if not wait:
        raise errors.InvalidInput("--timeout does not go with --no-wait", hint="leave out one")
    return since.length_ms("--timeout", text) / 1000
