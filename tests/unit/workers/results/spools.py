"""Helpers for spools of numbered rounds."""

from __future__ import annotations

from pathlib import Path

from poller.domain.failures.outcome import Result
from poller.domain.record.run import Run
from poller.workers.results.spool import Spool, SpooledRounds
from poller.workers.results.spool_codec import RunCodec
from poller.workers.results.spool_quota import SpoolQuota

MIB = 1024 * 1024


def round_of(number: int, message: str = "") -> list[Run]:
    """Return a round of one poll."""
    return [Run(number, 1_000, Result.OK, message=message)]


def numbers(taken: SpooledRounds[Run]) -> list[int]:
    return [run.target_id for items in taken.rounds for run in items]


def open_spool(
    directory: Path, quota: SpoolQuota | None = None, *, is_sink: bool = False
) -> Spool[Run]:
    """Open a spool of the ledger with the files in a directory."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    quota = quota or SpoolQuota(256 * MIB)
    spool: Spool[Run] = Spool("ledger", RunCodec(), lambda: directory, quota, is_sink)
    spool.open()
    return spool


def write_all(spool: Spool[Run]) -> list[int]:
    """Remove all rounds and return their numbers, in the order of writing."""
    written: list[int] = []
    while (taken := spool.oldest(7)).rounds:
        written += numbers(taken)
        spool.remove(taken)
    return written
