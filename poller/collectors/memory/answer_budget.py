"""The memory that the unfinished answers of all polls of one process may take together.

A device may send as much as one poll may read, and a worker polls many devices at the same time.
Collectors report large answers while they read them. Above the limit a poll whose answer is larger
than its share is cut; polls with small answers go on.
"""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Protocol

from poller import errors

#: More than the limits of one poll of any collector take.
DEFAULT_MB = 512
#: A collector reports its answer in steps of this size. A smaller answer is never reported, so
#: that usual polls pay nothing.
STEP_BYTES = 2**20
#: After a failed poll with a larger answer the garbage is collected.
LARGE_BYTES = 16 * 2**20
#: A collection stops the event loop for a moment, so it happens at most this often.
COLLECT_EVERY_S = 60.0
#: Time for the frames of a failed poll to end before the garbage is collected.
_COLLECT_AFTER_S = 0.1


class AnswerTooLarge(errors.DeviceProtocolError):
    """The answers under way fill their limit, and this one is larger than its share of it."""


class Hold(Protocol):
    """Reports further bytes of a poll's answer. Raises AnswerTooLarge."""

    def __call__(self, size: int, /) -> None: ...


class AnswerBudget:
    """One per process, used on the event loop only. Sizes are estimates, in bytes of memory."""

    def __init__(self, limit: int = DEFAULT_MB * 2**20) -> None:
        self.limit = limit
        self.held = 0
        self._by_poll: dict[int, int] = {}  # by id() of the poll
        self._collected_mono = -COLLECT_EVERY_S

    def add(self, poll: object, size: int) -> None:
        """Count further bytes of a poll's answer. Raises AnswerTooLarge."""
        mine = self._by_poll.get(id(poll), 0) + size
        self._by_poll[id(poll)] = mine
        self.held += size
        if self.held <= self.limit:
            return
        share = self.limit // len(self._by_poll)
        if mine > share:
            raise self._too_large(mine)

    def _too_large(self, mine: int) -> AnswerTooLarge:
        polls = len(self._by_poll)
        count = "1 poll" if polls == 1 else f"{polls} polls"
        return AnswerTooLarge(
            f"its answer takes {_mb(mine)} so far, which is too much for this worker",
            cause=f"unfinished answers of {count} take {_mb(self.held)} of {_mb(self.limit)}",
            hint="read less of the device, or raise POLLER_ANSWER_MEMORY_MB",
        )

    def release(self, poll: object) -> None:
        """Forget the answer of a poll that has ended. Idempotent."""
        if self._by_poll:
            self.held -= self._by_poll.pop(id(poll), 0)

    def collect_after(self, poll: object) -> None:
        """Collect the garbage soon if this poll, which has failed, holds a large answer.

        The code of a plugin may keep the answer in a cycle.
        """
        if self._by_poll.get(id(poll), 0) < LARGE_BYTES:
            return
        now_mono = time.monotonic()
        if now_mono - self._collected_mono >= COLLECT_EVERY_S:
            self._collected_mono = now_mono
            asyncio.get_running_loop().call_later(_COLLECT_AFTER_S, gc.collect)


def _mb(size: int) -> str:
    return f"{size / 2**20:.0f} MB"


#: The budget of this process.
shared = AnswerBudget()
