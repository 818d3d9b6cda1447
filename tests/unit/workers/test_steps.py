"""Whose code runs on the loop? Known at every moment, whatever a collector does with tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from poller.workers.guard import running_code
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.marks import FLIGHT, STEPS, TARGET


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
    """Also in tasks that it starts, after a cancellation, and between steps of others."""
    seen: list[tuple[int, int, int]] = []

    async def inner(target_id: int) -> None:
        seen.append((target_id, box.cells[TARGET], box.cells[FLIGHT]))
        await asyncio.sleep(0)
        seen.append((target_id, box.cells[TARGET], box.cells[FLIGHT]))

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
    assert len(seen) == 18
    assert all((found, flight) == (target_id, target_id * 10) for target_id, found, flight in seen)
    assert box.cells[STEPS] >= 18


def test_an_exception_ends_the_mark(box: BlackBox) -> None:
    """Of any kind."""

    async def fail() -> None:
        raise GeneratorExit

    async def work() -> None:
        running_code.mark(5, 1)
        with pytest.raises(GeneratorExit):
            await asyncio.create_task(fail())
        assert box.cells[TARGET] == 0

    run(box, work, uvloop.new_event_loop())


def test_what_is_nobodys_is_not_marked(box: BlackBox) -> None:
    """The platform's own tasks."""

    async def work() -> None:
        await asyncio.create_task(asyncio.sleep(0))

    run(box, work, uvloop.new_event_loop())
    assert box.cells[STEPS] == 0
