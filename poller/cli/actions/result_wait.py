"""Waits for requested polls: `poll`, `deadletter requeue` and `collectors release`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from poller.domain.record.target_status import Status

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: The exit code after `--wait` has run out.
TIMED_OUT = 124
CHECK_EVERY_S = 0.1


def finished(
    services: Services, ids: Sequence[int], requested_ms: int, wait_s: float
) -> Iterator[tuple[int, Status]]:
    """Yield each target whose poll finished after the request, until the time is over."""
    from poller.service.operations import poll_actions

    until_mono = time.monotonic() + wait_s

    waiting = set(ids)
    while True:
        found = poll_actions.newly_finished(services, waiting, requested_ms)
        waiting -= found.keys()
        yield from found.items()
        if not waiting or time.monotonic() >= until_mono:
            return
        time.sleep(CHECK_EVERY_S)
