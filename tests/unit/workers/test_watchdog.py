"""A process whose loop is blocked ends; one that is only busy does not. Each case is a process of its own."""

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
from poller.workers.guard.black_box import BlackBox, Wreck
from poller.workers.guard.loop_watchdog import EXIT_CODE, Watchdog
from poller.workers.guard.marks import STEPS

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


def compute_elsewhere(_: BlackBox) -> None:
    """Two threads that need no interpreter for it, for longer than the loop itself may compute."""
    work = [
        threading.Thread(target=lambda: hashlib.pbkdf2_hmac("sha512", b"", b"", 3_000_000))
        for _ in range(2)
    ]
    for thread in work:
        thread.start()


def spin_elsewhere(_: BlackBox) -> None:
    threading.Thread(target=spin, args=(_,)).start()
    time.sleep(30)


def tell(why: str, _: str) -> None:
    """The last words come out; where Redis is away they take for ever, and are cut short."""
    print(why, flush=True)
    time.sleep(60)


def live(home: Path, deed: Callable[[BlackBox], None]) -> None:
    (
        loop_watchdog.LOOK_S,
        loop_watchdog.CPU_S,
        loop_watchdog.ALL_CPU_S,
        loop_watchdog.LAST_WORDS_S,
    ) = 0.05, 1.0, 2.0, 0.2
    if (
        deed is compute_elsewhere
    ):  # twice as much as the loop may between two looks, if there are two cores
        loop_watchdog.LOOK_S, loop_watchdog.ALL_CPU_S = 1.0, 24.0
    box, loop = BlackBox(home, "w"), uvloop.new_event_loop()
    loop.set_task_factory(running_code.TaskFactory(box.cells))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    Watchdog(box, tell).start(loop)

    async def collect() -> None:
        deed(box)

    async def poll() -> None:
        running_code.mark(1, 1)
        await asyncio.create_task(collect())

    asyncio.run_coroutine_threadsafe(poll(), loop).result()
    time.sleep(2 if deed is compute_elsewhere else 1)


def exit_code(home: Path, deed: Any) -> int | None:
    process = multiprocessing.get_context("spawn").Process(target=live, args=(home, deed))
    process.start()
    process.join(25)
    code = process.exitcode
    process.kill()
    return code


@pytest.mark.parametrize(
    ("deed", "code"),
    [
        (block, EXIT_CODE),
        (compute, EXIT_CODE),
        (spin, -signal.SIGVTALRM),
        (be_busy, FINE),
        (rest, FINE),
        (compute_elsewhere, FINE),
    ],
)
def test_a_process_ends_when_its_loop_is_blocked_and_not_before(
    tmp_path: Path, deed: Any, code: int
) -> None:
    """Within 25 seconds here; usually five looks of a second."""
    assert exit_code(tmp_path, deed) == code


def test_a_thread_that_stops_everybody_ends_the_process_too(tmp_path: Path) -> None:
    """Not the loop's: it computes where its own time is not looked at, and nobody else gets a turn."""
    assert exit_code(tmp_path, spin_elsewhere) == -signal.SIGVTALRM


def block_for_a_while(home: Path) -> None:
    """One collector blocks, and lets go while the last words are said; then another has its turn, an ordinary one."""
    loop_watchdog.LOOK_S, loop_watchdog.LAST_WORDS_S = 0.05, 20.0
    box, loop = BlackBox(home, "w"), uvloop.new_event_loop()
    loop.set_task_factory(running_code.TaskFactory(box.cells))
    last_words, others_turn = threading.Event(), threading.Event()

    def tell_late(_: str, __: str) -> None:
        last_words.set()
        others_turn.wait()

    async def bad() -> None:
        last_words.wait()

    async def good() -> None:
        others_turn.set()
        block(box)

    async def poll(target_id: int, flight: int, collect: Callable[[], Any]) -> None:
        running_code.mark(target_id, flight)
        await asyncio.create_task(collect())

    async def both() -> None:
        with box.noted("t", 0, 1, "poll.good") as other:
            with box.noted("t", 0, 1, "poll.bad") as first:
                await asyncio.create_task(poll(11, first, bad))
            await asyncio.create_task(poll(22, other, good))

    Watchdog(box, tell_late).start(loop)
    loop.run_until_complete(both())


def test_who_blocked_the_loop_is_blamed_not_who_ran_when_the_process_ended(tmp_path: Path) -> None:
    """Three of these quarantine a collector."""
    process = multiprocessing.get_context("spawn").Process(
        target=block_for_a_while, args=(tmp_path,)
    )
    process.start()
    process.join(25)
    assert process.exitcode == EXIT_CODE
    found: list[Wreck] = []
    black_box.open_wrecks(tmp_path, found.append)
    [wreck] = found
    assert wreck.flight is not None
    assert (wreck.target_id, wreck.flight.collector) == (11, "bad")
    assert "the loop stood still at " in wreck.fault
