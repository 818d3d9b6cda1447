"""A fleet for benchmarks: devices with one target each, spread over domains."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy.engine import Engine

from benchmarks import progress
from poller.db.inventory import imports
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

_PER_IMPORT = 50_000
TIMEOUT_MS = 900


def store(engine: Engine, targets: int, interval_s: int, domains: int) -> None:
    """Fill an empty inventory with several imports, which saves memory."""
    with progress.shown(f"storing {targets:,} targets in SQLite", targets) as show:
        for start in range(0, targets, _PER_IMPORT):
            numbers = range(start, min(start + _PER_IMPORT, targets))
            imports.apply_import(engine, list(_rows(numbers, interval_s, domains)))
            show(numbers.stop)


def _rows(numbers: range, interval_s: int, domains: int) -> Iterator[imports.Row]:
    target = TargetDraft("snmp", "snmp", {}, interval_ms=interval_s * 1000, timeout_ms=TIMEOUT_MS)
    for number in numbers:
        required = {"domain": f"d{number % domains}"}
        yield imports.Row(DeviceDraft(f"device-{number}", "127.0.0.1", requires=required), [target])
