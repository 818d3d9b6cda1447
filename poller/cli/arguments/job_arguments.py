"""Names, scopes, plan times and time-outs of `poller jobs` on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from poller import errors
from poller.cli.arguments import since
from poller.domain.jobs.job_run import GLOBAL

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


def scope(text: str) -> tuple[str, str]:
    """The kind and id of `KIND:ID`, or of `global`. Raises InvalidInput, which names the option."""
    if text == GLOBAL:
        return GLOBAL, GLOBAL
    kind, colon, key = text.partition(":")
    if not (kind and colon and key):
        raise errors.InvalidInput(
            f'--scope: "{text}" is no scope', hint="write KIND:ID, such as site:ams"
        )
    return kind, key


def instant_ms(option: str, text: str) -> int:
    """An instant in ms; UTC unless the text has an offset. Raises InvalidInput."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise errors.InvalidInput(
            f'{option}: "{text}" is no time', hint="write 2026-11-18T02:00:00Z"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return round(at.timestamp() * 1000)


def timeout_s(text: str | None, wait: bool) -> float | None:
    """The patience in seconds; None for as long as it takes. Raises InvalidInput."""
    if text is None:
        return None
    if not wait:
        raise errors.InvalidInput("--timeout does not go with --no-wait", hint="leave out one")
    return since.length_ms("--timeout", text) / 1000
