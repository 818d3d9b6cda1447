"""Checks for leaks over many polls, and for polls that run at the same time."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from poller.collectors.api import Closeable
from poller.collectors.sessions import Sessions
from poller.testing.hostile import Manner, hostile
from poller.testing.subject import BRIEF_S, Device, Failed, Held, Inapplicable, Subject, settled

POLLS = 20
#: Polls before the first count: a cache or a resolver that is made once is not a leak.
WARM_UP = 3
AT_A_TIME = 8


async def leaks(subject: Subject) -> None:
    """Many polls leave no files, tasks or threads, also of a device that hangs up."""
    await _check_leaks(subject, subject.device, POLLS, "polls")
    try:
        with hostile(Manner.HANGS_UP) as port:
            device = subject.at(port)
            await _check_leaks(subject, device, POLLS // 2, "polls of a device that hangs up")
    except Inapplicable:
        return


async def _check_leaks(subject: Subject, device: Device, polls: int, what: str) -> None:
    collector = subject.make()
    sessions = Sessions()
    how: dict[str, Any] = {"collector": collector, "sessions": sessions, "memory": {}}
    try:
        for _ in range(WARM_UP):
            await subject.poll(device, BRIEF_S / 2, **how)
        before = Held.now()
        for _ in range(polls):
            await subject.poll(device, BRIEF_S / 2, **how)
        gc.collect()
        for kind in ("files", "tasks", "threads"):
            await _check_growth(kind, before, polls, what)
    finally:
        await sessions.close()
        if isinstance(collector, Closeable):
            await collector.close()


async def _check_growth(kind: str, before: Held, polls: int, what: str) -> None:
    def grown() -> int:
        return int(getattr(Held.now(), kind) - getattr(before, kind))

    if not await settled(lambda: grown() < polls // 2):
        words = {
            "files": "files or sockets open",
            "tasks": "tasks running",
            "threads": "threads running",
        }
        raise Failed(f"{polls} {what} left {grown()} {words[kind]}: release them in a `finally`")


async def side_by_side(subject: Subject) -> None:
    """One instance polls several targets at once: `self` holds nothing of a single poll."""
    collector = subject.make()
    sessions = Sessions()
    try:
        polls = [subject.poll(collector=collector, sessions=sessions) for _ in range(AT_A_TIME)]
        done = await asyncio.gather(*polls)
    finally:
        await sessions.close()
        if isinstance(collector, Closeable):
            await collector.close()
    for seen in done:
        if not seen.is_ok:
            raise Failed(
                f"one of {AT_A_TIME} polls at the same time by one instance failed: {seen.told}"
            )
