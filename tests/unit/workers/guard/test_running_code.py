"""The cells name the target whose code runs on the loop, however its collector uses tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from poller.workers.guard import running_code
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.running_code import BATCH, STEPS, TARGET


@pytest.fixture
def box(tmp_path: Path) -> BlackBox:
    return BlackBox(tmp_path, "w")


def run(
    box: BlackBox, work: Callable[[], Coroutine[Any, Any, None]], loop: asyncio.AbstractEventLoop
) -> None:
    loop.set_task_factory(running_code.TaskFactory(box.cells))
    try:
        loop.run_until_complete(work())
    finally:
        loop.close()


@pytest.mark.parametrize(
    "new_loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"]
)
def test_each_target_is_marked_while_its_code_runs_and_only_then(
    box: BlackBox, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """This holds in tasks that a collector starts, and after a cancellation."""
    marks: list[tuple[int, int, int]] = []

    async def inner(target_id: int) -> None:
        marks.append((target_id, box.cells[TARGET], box.cells[BATCH]))
        await asyncio.sleep(0)
        marks.append((target_id, box.cells[TARGET], box.cells[BATCH]))

    async def collect(target_id: int) -> None:
        await inner(target_id)
        await asyncio.create_task(inner(target_id))
        try:
            await asyncio.wait_for(asyncio.sleep(60), 0.01)
        except TimeoutError:
            await inner(target_id)

    async def poll(target_id: int) -> None:
        running_code.mark(target_id, target_id * 10)
        await asyncio.create_task(collect(target_id))

    async def work() -> None:
        await asyncio.gather(*(asyncio.create_task(poll(target_id)) for target_id in (1, 2, 3)))
        assert box.cells[TARGET] == 0

    run(box, work, new_loop())
    assert len(marks) == 18
    for target_id, marked_target, marked_batch in marks:
        assert (marked_target, marked_batch) == (target_id, target_id * 10)
    assert box.cells[STEPS] >= 18


def test_an_exception_ends_the_mark(box: BlackBox) -> None:
    """Even a GeneratorExit does."""

    async def fail() -> None:
        raise GeneratorExit

    async def work() -> None:
        running_code.mark(5, 1)
        with pytest.raises(GeneratorExit):
            await asyncio.create_task(fail())
        assert box.cells[TARGET] == 0

    run(box, work, uvloop.new_event_loop())


def test_the_platforms_own_tasks_are_not_marked(box: BlackBox) -> None:
    """They belong to no poll."""

    async def work() -> None:
        await asyncio.create_task(asyncio.sleep(0))

    run(box, work, uvloop.new_event_loop())
    assert box.cells[STEPS] == 0
