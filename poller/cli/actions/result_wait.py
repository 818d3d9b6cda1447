"""Waits for requested polls: `poll`, `deadletter requeue` and `collectors release`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from poller.domain.batched import batched
from poller.domain.record.target_status import Status

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: The exit code after `--wait` has run out.
TIMED_OUT = 124
CHECK_EVERY_S = 0.1
_PAGE = 1_000


def finished(
    services: Services, ids: Sequence[int], requested_ms: int, wait_s: float
) -> Iterator[tuple[int, Status]]:
    """Yield each target whose poll finished after the request, until the time is over."""
    until_mono = time.monotonic() + wait_s

    waiting = set(ids)
    while True:
        for page in batched(sorted(waiting), _PAGE):
            for target_id, status in services.board.statuses(page).items():
                if status.finished_ms >= requested_ms:
                    waiting.remove(target_id)
                    yield target_id, status
        if not waiting or time.monotonic() >= until_mono:
            return
        time.sleep(CHECK_EVERY_S)
