"""Runs counted by half hours and outcomes, on every database."""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller.db.record import run_ledger, runs_by_slot
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS
from poller.domain.record.run import Run
from poller.domain.record.slot_strip import RunCount

START = 1_000 * SLOT_MS


def test_runs_are_counted_by_target_slot_and_outcome(engine: Engine) -> None:
    """A run at the edge belongs to the slot that it begins; other targets are left out."""
    planned = [
        (1, START, Result.OK),
        (1, START + SLOT_MS - 1, Result.FAILED),
        (1, START + SLOT_MS, Result.OK),
        (1, START - 1, Result.OK),
        (2, START, Result.OK),
        (3, START, Result.OK),
    ]
    run_ledger.write(engine, [Run(*each, token="t") for each in planned])
    found = runs_by_slot.counts(engine, [1, 2, 9], START, START + 2 * SLOT_MS)
    assert {key: sorted(counts) for key, counts in found.items()} == {
        1: [
            RunCount(START, Result.FAILED, 1),
            RunCount(START, Result.OK, 1),
            RunCount(START + SLOT_MS, Result.OK, 1),
        ],
        2: [RunCount(START, Result.OK, 1)],
        9: [],
    }


def test_no_target_is_no_question(engine: Engine) -> None:
    """A device without targets has no runs."""
    assert runs_by_slot.counts(engine, [], 0, START) == {}
