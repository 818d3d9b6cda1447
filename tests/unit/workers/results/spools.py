"""Spools of numbered rounds."""

from __future__ import annotations

from pathlib import Path

from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.workers.results import spool_codec
from poller.workers.results.spool import Room, Spool, Taken

MIB = 1024 * 1024


def round_of(number: int, message: str = "") -> list[Run]:
    """A round of one poll."""
    return [Run(number, 1_000, Result.OK, message=message)]


def numbers(taken: Taken[Run]) -> list[int]:
    return [run.target_id for one in taken.rounds for run in one]


def opened(place: Path, room: Room | None = None) -> Spool[Run]:
    """A spool of the ledger on a directory, with what is in it."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    made: Spool[Run] = Spool("ledger", spool_codec.Runs(), lambda: place, room or Room(256 * MIB))
    made.open()
    return made


def written_out(waiting: Spool[Run]) -> list[int]:
    """Everything, in the order in which it would be written."""
    found: list[int] = []
    while (taken := waiting.oldest(7)).rounds:
        found += numbers(taken)
        waiting.forget(taken)
    return found
