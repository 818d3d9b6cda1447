"""A process whose loop is blocked ends; a process that is only busy does not.

Each case is a process of its own.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from poller.workers.guard import black_box, loop_watchdog, running_code
from poller.workers.guard.black_box import BlackBox, CrashRecord
from poller.workers.guard.loop_watchdog import EXIT_CODE, LoopWatchdog
from poller.workers.guard.running_code import STEPS

FINE = 0


def block(_: BlackBox) -> None:
    time.sleep(30)


def compute(_: BlackBox) -> None:
    while True:
        pass


def spin(_: BlackBox) -> None:
    """Never lets another thread run."""
    re.match(r"(a+)+$", "a" * 64 + "!")


def be_busy(box: BlackBox) -> None:
    """One long iteration of the loop with steps of many targets."""
    for _ in range(100):
        time.sleep(0.01)
        box.cells[STEPS] += 1


def rest(_: BlackBox) -> None:
    """Do nothing."""


def compute_in_threads(_: BlackBox) -> None:
    """Compute in two threads without the interpreter, longer than the loop itself may compute."""

    def compute_without_interpreter() -> None:
        hashlib.pbkdf2_hmac("sha512", b"", b"", 3_000_000)

    for _number in range(2):
        threading.Thread(target=compute_without_interpreter).start()


def spin_in_a_thread(box: BlackBox) -> None:
    threading.Thread(target=spin, args=(box,)).start()
    time.sleep(30)


class HangingEvents:
    """Events while Redis is away: emitting never returns."""

    def emit(self, reason: str, _: str) -> None:
        print(reason, flush=True)
        time.sleep(60)


def run_watched(home: Path, action: Callable[[BlackBox], None]) -> None:
    loop_watchdog.CHECK_S = 0.05
    loop_watchdog.LOOP_CPU_S = 1.0
    loop_watchdog.PROCESS_CPU_S = 2.0
    loop_watchdog.EVENT_S = 0.2
    if action is compute_in_threads:
        # With two cores: twice as much between two checks as the loop may use.
        loop_watchdog.CHECK_S = 1.0
        loop_watchdog.PROCESS_CPU_S = 24.0
    box = BlackBox(home, "w")
    loop = uvloop.new_event_loop()
    loop.set_task_factory(running_code.TaskFactory(box.cells))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    LoopWatchdog(box, HangingEvents()).start(loop)  # type: ignore[arg-type]

    async def collect() -> None:
        action(box)

    async def poll() -> None:
        running_code.mark(1, 1)
        await asyncio.create_task(collect())

    asyncio.run_coroutine_threadsafe(poll(), loop).result()
    time.sleep(2 if action is compute_in_threads else 1)


def exit_code(home: Path, action: Any) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=run_watched, args=(home, action))
    process.start()
    process.join(25)
    code = process.exitcode
    process.kill()
    return code


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (block, EXIT_CODE),
        (compute, EXIT_CODE),
        (spin, -signal.SIGVTALRM),
        (be_busy, FINE),
        (rest, FINE),
        (compute_in_threads, FINE),
    ],
)
def test_a_process_ends_when_its_loop_is_blocked_and_not_before(
    tmp_path: Path, action: Any, code: int
) -> None:
    """The test allows 25 seconds; a worker needs five checks of one second."""
    assert exit_code(tmp_path, action) == code


def test_a_thread_that_holds_the_interpreter_ends_the_process(tmp_path: Path) -> None:
    """Its CPU time does not count for the loop's thread, but for the process."""
    assert exit_code(tmp_path, spin_in_a_thread) == -signal.SIGVTALRM


def block_for_a_while(home: Path) -> None:
    """Block the loop until the event is emitted; then let another, sound collector run."""
    loop_watchdog.CHECK_S = 0.05
    loop_watchdog.EVENT_S = 20.0
    box = BlackBox(home, "w")
    loop = uvloop.new_event_loop()
    loop.set_task_factory(running_code.TaskFactory(box.cells))
    emitting = threading.Event()
    other_runs = threading.Event()

    class SlowEvents:
        def emit(self, _: str, __: str) -> None:
            emitting.set()
            other_runs.wait()

    async def bad() -> None:
        emitting.wait()

    async def good() -> None:
        other_runs.set()
        block(box)

    async def poll(target_id: int, batch_number: int, collect: Callable[[], Any]) -> None:
        running_code.mark(target_id, batch_number)
        await asyncio.create_task(collect())

    async def both() -> None:
        with box.record_batch("t", 0, 1, "poll.good") as second:
            with box.record_batch("t", 0, 1, "poll.bad") as first:
                await asyncio.create_task(poll(11, first, bad))
            await asyncio.create_task(poll(22, second, good))

    LoopWatchdog(box, SlowEvents()).start(loop)  # type: ignore[arg-type]
    loop.run_until_complete(both())


def test_the_poll_that_blocked_the_loop_is_blamed_not_the_last_one_that_ran(
    tmp_path: Path,
) -> None:
    """Three such crashes quarantine a collector, so the right one must be named."""
    process = multiprocessing.get_context("spawn").Process(
        target=block_for_a_while, args=(tmp_path,)
    )
    process.start()
    process.join(25)
    assert process.exitcode == EXIT_CODE
    records: list[CrashRecord] = []
    black_box.read_crashes(tmp_path, records.append)
    [record] = records
    assert record.batch is not None
    assert (record.target_id, record.batch.collector) == (11, "bad")
    assert "the loop stood still at " in record.fault
