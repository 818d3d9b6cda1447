"""Ends this process when a collector blocks its loop: no other poll could go on, and a thread cannot be killed.

The loop counts as blocked when it neither answers nor starts another step while we look five times. Looks are counted,
not seconds: a process that was paused, or that gets no time from a busy machine, does not look either.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from poller.observability import logs
from poller.workers.guard import marks
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.cpu_alarm import CpuAlarm

log = logs.get(__name__)

LOOK_S = 1.0
LOOKS = 5
#: Code that never lets Python switch threads (a regular expression gone wild) stops us, too. Then the kernel ends the
#: process, after so much CPU time of the loop without a look; `faulthandler` prints where it was.
CPU_S = 8.0
#: The same for code in any other thread. All of them count together, and those that need no interpreter may compute on
#: many cores at a time; hence so much more.
ALL_CPU_S = 24.0
#: How long the last words may take: Redis may be away.
LAST_WORDS_S = 2.0
EXIT_CODE = 70
_FRAMES = 4

#: Why it stood still, and what comes then.
Tell = Callable[[str, str], None]


class Watchdog:
    def __init__(self, box: BlackBox, tell: Tell) -> None:
        self._box = box
        self._tell = tell
        self._answers = 0
        self._thread_id = 0
        self._alarm: CpuAlarm | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        threading.Thread(target=self._watch, args=(loop,), name="watchdog", daemon=True).start()

    def _answer(self) -> None:
        if not self._thread_id:
            self._thread_id = threading.get_ident()
            self._alarm = _alarm(self._thread_id)
        self._answers += 1

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        seen, still = (0, 0), 0
        while True:
            self._put_off()
            loop.call_soon_threadsafe(self._answer)
            time.sleep(LOOK_S)
            now = self._seen()
            still = still + 1 if now == seen else 0
            seen = now
            if still >= LOOKS:
                guilty, at = marks.on_loop(self._box.cells), self._where()
                if self._seen() == seen:  # else it went on just now, and that was somebody else
                    self._end(guilty, at)

    def _seen(self) -> tuple[int, int]:
        return self._answers, self._box.cells[marks.STEPS]

    def _put_off(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, ALL_CPU_S)
        if self._alarm is not None:
            self._alarm.put_off()

    def _end(self, guilty: marks.Whose, at: str) -> None:
        """Whoever starts next on this home says whose fault it was, and the leases bring the targets back.

        It is noted first: the loop may go on with others while the last words are said.
        """
        target_id, flight = guilty
        collector = self._box.collector(flight) if target_id else ""
        self._box.note_fault(marks.verdict(guilty, f"the loop stood still at {at}"))
        log.critical(
            "poll_loop_blocked",
            collector=collector,
            target_id=target_id,
            seconds=LOOKS * LOOK_S,
            at=at,
            fix="a collector must not block: it should await, or use a thread",
        )
        why = (
            f"its poll loop is blocked by collector {collector}"
            if collector
            else "its poll loop is blocked"
        )
        self._put_off()
        words = threading.Thread(target=self._tell, args=(why, "the process ends"), daemon=True)
        words.start()
        words.join(LAST_WORDS_S)
        os._exit(EXIT_CODE)

    def _where(self) -> str:
        """Files, lines and names, the innermost last; never a value."""
        frame = sys._current_frames().get(self._thread_id)
        frames = list(traceback.walk_stack(frame))[:_FRAMES] if frame else []
        return " > ".join(
            f"{Path(each.f_code.co_filename).name}:{line} {each.f_code.co_name}"
            for each, line in frames[::-1]
        )


def _alarm(thread_id: int) -> CpuAlarm | None:
    """None where the kernel has none: then all threads together are limited, which is later."""
    try:
        return CpuAlarm(thread_id, CPU_S)
    except (OSError, AttributeError) as error:
        log.warning("no_cpu_alarm", error=str(error))
        return None
