"""Waits of requests for the results of polls: without a thread each, and not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.concurrency import run_in_threadpool

from poller.bootstrap import Services
from poller.domain.record.target_status import Status
from poller.service.operations import poll_actions
from poller.web.api.contract.needs import Call

#: Targets of one request, as many as a response has room for.
MOST_TARGETS = 1_000
#: Requests of this process that wait at the same time. Another one is answered at once.
MOST_WAITING = 200
#: The first pause between two looks. Every pause is longer than the one before.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
_GROWTH = 1.5

_places = asyncio.Semaphore(MOST_WAITING)


async def finished(
    services: Services, ids: Sequence[int], requested_ms: int, wait_s: float
) -> dict[int, Status]:
    """Return the targets whose poll has finished, after all have or the time is over."""
    if not wait_s or _places.locked():
        return await run_in_threadpool(poll_actions.newly_finished, services, ids, requested_ms)
    async with _places:
        return await _wait(services, ids, requested_ms, wait_s)


async def _wait(
    services: Services, ids: Sequence[int], requested_ms: int, wait_s: float
) -> dict[int, Status]:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    pause_s = FIRST_PAUSE_S
    waiting = set(ids)
    done: dict[int, Status] = {}
    while True:
        found = await run_in_threadpool(
            poll_actions.newly_finished, services, waiting, requested_ms
        )
        done |= found
        waiting -= found.keys()
        left_s = until - loop.time()
        if not waiting or left_s <= 0:
            return done
        await asyncio.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * _GROWTH, LONGEST_PAUSE_S)


def ticket_of(call: Call, ids: Sequence[int], requested_ms: int) -> str | None:
    """Keep a ticket for results that are read later; None for none or too many targets."""
    if not 0 < len(ids) <= MOST_TARGETS:
        return None
    return poll_actions.keep_ticket(call.services, call.actor, ids, requested_ms)
