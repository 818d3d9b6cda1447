"""What it leaves behind, poll after poll, in a worker that runs for months."""

from __future__ import annotations

import asyncio
import gc

from poller.collectors.api import Closeable
from poller.collectors.sessions import Sessions
from poller.testing.hostile import Manner, hostile
from poller.testing.subject import BRIEF_S, Device, Failed, Held, Inapplicable, Subject, settled

POLLS = 20
#: What is made once and kept - a cache, a resolver - is no leak: it does not grow with every poll.
WARM_UP = 3
AT_A_TIME = 8


async def leaks(subject: Subject) -> None:
    """Many polls by one instance, of a device that answers and of one that hangs up, leave nothing behind."""
    await _look_for_leaks(subject, subject.device, POLLS, "polls")
    try:
        with hostile(Manner.HANGS_UP) as port:
            await _look_for_leaks(
                subject, subject.at(port), POLLS // 2, "polls of a device that hangs up"
            )
    except Inapplicable:
        return


async def _look_for_leaks(subject: Subject, device: Device, polls: int, what: str) -> None:
    collector = subject.make()
    sessions = Sessions()
    memory: dict[str, object] = {}
    try:
        for _ in range(WARM_UP):
            await subject.poll(
                device, BRIEF_S / 2, collector=collector, sessions=sessions, memory=memory
            )
        before = Held.now()
        for _ in range(polls):
            await subject.poll(
                device, BRIEF_S / 2, collector=collector, sessions=sessions, memory=memory
            )
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
        raise Failed(
            f"{polls} {what} left {grown()} {words[kind]}: end in a `finally` what you begin"
        )


async def side_by_side(subject: Subject) -> None:
    """One instance polls several targets at the same time: what belongs to a poll is not kept in `self`."""
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
                f"of {AT_A_TIME} polls at the same time by one instance, one failed: {seen.told}"
            )
