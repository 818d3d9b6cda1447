"""A process whose loop is blocked ends; one that is only busy does not. Each case is a process of its own."""

from __future__ import annotations

import asyncio
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

from poller.workers import steps, watchdog
from poller.workers.blackbox import STEPS, BlackBox
from poller.workers.watchdog import EXIT_CODE, Watchdog

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
    """A long turn of the loop in which many targets have theirs."""
    for _ in range(100):
        time.sleep(0.01)
        box.cells[STEPS] += 1


def rest(_: BlackBox) -> None:
    """Nothing to do."""


def live(home: Path, deed: Callable[[BlackBox], None]) -> None:
    watchdog.LOOK_S, watchdog.CPU_S = 0.05, 1.0
    box, loop = BlackBox(home, "w"), uvloop.new_event_loop()
    loop.set_task_factory(steps.TaskFactory(box))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    Watchdog(box).start(loop)

    async def collect() -> None:
        deed(box)

    async def poll() -> None:
        steps.mark(1, 1)
        await asyncio.create_task(collect())

    asyncio.run_coroutine_threadsafe(poll(), loop).result()
    time.sleep(1)


def exit_code(home: Path, deed: Any) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=live, args=(home, deed))
    process.start()
    process.join(25)
    code = process.exitcode
    process.kill()
    return code


@pytest.mark.parametrize(
    ("deed", "code"),
    [(block, EXIT_CODE), (compute, EXIT_CODE), (spin, -signal.SIGVTALRM), (be_busy, FINE), (rest, FINE)],
)
def test_a_process_ends_when_its_loop_is_blocked_and_not_before(tmp_path: Path, deed: Any, code: int) -> None:
    """Within 25 seconds here; usually five looks of a second."""
    assert exit_code(tmp_path, deed) == code
