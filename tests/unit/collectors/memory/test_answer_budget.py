"""The memory that unfinished answers of all polls may take together."""

from __future__ import annotations

import asyncio
import gc

import pytest

from poller.collectors.memory import answer_budget
from poller.collectors.memory.answer_budget import AnswerBudget, AnswerTooLarge

MB = 2**20


def test_one_poll_may_take_the_whole_limit() -> None:
    budget = AnswerBudget(10 * MB)
    poll = object()
    budget.add(poll, 6 * MB)
    budget.add(poll, 4 * MB)
    with pytest.raises(AnswerTooLarge) as raised:
        budget.add(poll, MB)
    assert str(raised.value) == (
        "its answer takes 11 MB so far, which is too much for this worker"
        " (unfinished answers of 1 poll take 11 MB of 10 MB)"
    )
    assert "POLLER_ANSWER_MEMORY_MB" in raised.value.hint


def test_above_the_limit_polls_below_their_share_go_on() -> None:
    budget = AnswerBudget(10 * MB)
    hostile, small = object(), object()
    budget.add(hostile, 10 * MB)
    budget.add(small, 4 * MB)
    with pytest.raises(AnswerTooLarge):
        budget.add(hostile, MB)
    with pytest.raises(AnswerTooLarge):
        budget.add(small, 2 * MB)


def test_the_sum_has_a_limit_whatever_polls_send() -> None:
    """Each poll adds a megabyte at a time, and ends when it is cut."""
    budget = AnswerBudget(64 * MB)
    polls: set[object] = {object() for _ in range(50)}
    highest = 0
    while polls:
        for poll in list(polls):
            try:
                budget.add(poll, MB)
            except AnswerTooLarge:
                budget.release(poll)
                polls.remove(poll)
            highest = max(highest, budget.held)
    assert highest <= 2 * 64 * MB
    assert budget.held == 0


def test_a_release_is_idempotent_and_takes_unknown_polls() -> None:
    budget = AnswerBudget(10 * MB)
    poll = object()
    budget.release(poll)
    budget.add(poll, MB)
    budget.release(object())
    budget.release(poll)
    budget.release(poll)
    assert budget.held == 0


def test_garbage_is_collected_after_a_failed_large_answer_and_not_too_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    collections = []
    monkeypatch.setattr(answer_budget, "_COLLECT_AFTER_S", 0.0)
    monkeypatch.setattr(gc, "collect", lambda: collections.append(1))

    async def fail(budget: AnswerBudget, size: int) -> None:
        poll = object()
        budget.add(poll, size)
        budget.collect_after(poll)
        budget.release(poll)
        await asyncio.sleep(0.01)

    async def run() -> list[int]:
        budget = AnswerBudget(100 * MB)
        counts = []
        for size in (MB, 20 * MB, 20 * MB):
            await fail(budget, size)
            counts.append(len(collections))
        return counts

    assert asyncio.run(run()) == [0, 1, 1]
