"""The watchdog of the event loop: it ends the process when a collector blocks the loop.

No other poll can go on then, and a thread cannot be killed. The loop counts as blocked when it
neither answers nor starts another step during five checks. Checks are counted, not seconds: a
paused process, or one without CPU time on a busy machine, makes no checks.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

from poller.metering import process_metrics
from poller.observability import logs
from poller.workers.guard import running_code
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.consumer_watchdog import StallEvents
from poller.workers.guard.cpu_alarm import CpuAlarm
from poller.workers.guard.running_code import RunningPoll

log = logs.get(__name__)

CHECK_S = 1.0
BAD_CHECKS = 5
#: Code that never lets Python switch threads (a runaway regular expression) stops the watchdog
#: too. The kernel then ends the process after this much CPU time of the loop's thread, and
#: `faulthandler` writes the stack.
LOOP_CPU_S = 8.0
#: The same limit for all threads together. Threads that do not need the interpreter may use many
#: cores.
PROCESS_CPU_S = 24.0
#: The time for the event about the stall: Redis may be away.
EVENT_S = 2.0
EXIT_CODE = 70


class LoopWatchdog:
    def __init__(self, black_box: BlackBox, events: StallEvents) -> None:
        self._black_box = black_box
        self._events = events
        self._answers = 0
        self._thread_id = 0
        self._alarm: CpuAlarm | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Watch a loop from a thread of its own."""
        arguments = (loop,)
        thread = threading.Thread(target=self._watch, args=arguments, name="watchdog", daemon=True)
        thread.start()

    def _answer(self, asked_mono: float) -> None:
        """Runs on the loop."""
        process_metrics.loop_lag_seconds.observe(time.monotonic() - asked_mono)
        if not self._thread_id:
            self._thread_id = threading.get_ident()
            self._alarm = _create_alarm(self._thread_id)
        self._answers += 1

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        progress = (0, 0)
        bad_checks = 0
        while True:
            self._reset_alarms()
            loop.call_soon_threadsafe(self._answer, time.monotonic())
            time.sleep(CHECK_S)

            before = progress
            progress = self._progress()
            bad_checks = bad_checks + 1 if progress == before else 0
            if bad_checks == 1:
                process_metrics.loop_stalls.add()

            if bad_checks >= BAD_CHECKS:
                poll = running_code.on_loop(self._black_box.cells)
                location = running_code.thread_location(self._thread_id)
                if self._progress() == progress:  # else the loop went on, and the poll is another
                    self._end_process(poll, location)

    def _progress(self) -> tuple[int, int]:
        """Return the answers of the loop and the steps of its tasks so far."""
        steps = self._black_box.cells[running_code.STEPS]
        return self._answers, steps

    def _reset_alarms(self) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, PROCESS_CPU_S)
        if self._alarm is not None:
            self._alarm.reset()

    def _end_process(self, poll: RunningPoll, location: str) -> None:
        """Record the poll that blocks the loop and end the process.

        Another worker of this host reports the record, and the leases bring the targets back. The
        record comes first: the loop may go on with other polls while the event is emitted.
        """
        fault = running_code.blame(poll, f"the loop stood still at {location}")
        self._black_box.record_fault(fault)

        collector = self._black_box.collector_of(poll.batch_number) if poll.target_id else ""
        log.critical(
            "poll_loop_blocked",
            collector=collector,
            target_id=poll.target_id,
            seconds=BAD_CHECKS * CHECK_S,
            at=location,
            fix="a collector must not block: it should await, or use a thread",
        )
        reason = "its poll loop is blocked"
        if collector:
            reason = f"{reason} by collector {collector}"

        self._reset_alarms()
        arguments = (reason, "the process ends")
        emitting = threading.Thread(target=self._events.emit, args=arguments, daemon=True)
        emitting.start()
        emitting.join(EVENT_S)
        os._exit(EXIT_CODE)


def _create_alarm(thread_id: int) -> CpuAlarm | None:
    """Return None if the kernel has no such timer: the limit of the whole process remains."""
    try:
        return CpuAlarm(thread_id, LOOP_CPU_S)
    except (OSError, AttributeError) as error:
        log.warning("no_cpu_alarm", error=str(error))
        return None
