"""How long until an empty board is full again, and what does a check for changes cost?"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import cpu, fleet, progress
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from poller import errors
from poller.beat import reconcile


@dataclass(frozen=True, slots=True)
class Size:
    targets: int
    passes: int  # over unchanged targets


def run(size: Size, stage: Stage) -> Findings:
    fleet.store(stage.services.engine, size.targets, interval_s=60, domains=16)
    return Findings([*_rebuild(size, stage), *_unchanged(size, stage)])


def _rebuild(size: Size, stage: Stage) -> list[Figure]:
    began, ours, server = time.monotonic(), cpu.seconds(os.getpid()), stage.server.cpu_s
    with progress.shown(f"rebuilding a board of {size.targets:,} targets", size.targets):
        if not _reconcile(stage):
            raise errors.StoreConflict("the board was not empty")
    took = time.monotonic() - began
    ours, server = cpu.seconds(os.getpid()) - ours, stage.server.cpu_s - server
    return [
        Figure("rebuild_s", f"from an empty board to {size.targets:,} targets", took, "s"),
        Figure("rebuild_per_s", "targets placed", size.targets / took, "/s"),
        Figure("rebuild_cpu_us", "CPU of the leader", ours / size.targets * 1e6, "us/target"),
        Figure("rebuild_server_cpu_us", "CPU of server", server / size.targets * 1e6, "us/target"),
    ]


def _unchanged(size: Size, stage: Stage) -> list[Figure]:
    """Measure passes without changes, as the leader makes every 30 s and after each edit."""
    took: list[float] = []
    commands_before = stage.server.commands
    with (
        _counted(stage.services.engine) as statements,
        progress.shown("looking for changes", size.passes) as show,
    ):
        for number in range(size.passes):
            began = time.perf_counter()
            if _reconcile(stage):
                raise errors.StoreConflict(
                    "there was something to reconcile, though nothing had changed"
                )
            took.append((time.perf_counter() - began) * 1000)
            show(number)
    commands = (
        stage.server.commands - commands_before - 1
    )  # the second count includes the first query
    return [
        Figure(
            "unchanged_ms",
            "a pass over unchanged targets, median",
            statistics.median(took),
            "ms",
            below=5,
        ),
        Figure(
            "unchanged_sql", "SQL statements of a pass", len(statements) / size.passes, "statements"
        ),
        Figure(
            "unchanged_commands", "Redis commands of a pass", commands / size.passes, "commands"
        ),
    ]


def _reconcile(stage: Stage) -> bool:
    """Reconcile as the leader does, without an election."""
    services = stage.services
    return reconcile.reconcile(
        services.board, services.engine, "", time.time_ns() // 1_000_000
    ).changed


@contextmanager
def _counted(engine: Engine) -> Iterator[list[str]]:
    """Count the statements that reach the driver."""
    statements: list[str] = []

    def note(_conn: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    sa.event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        sa.event.remove(engine, "before_cursor_execute", note)


SECTION = Section(
    asks="how long until an empty board is full again, and what does a check for changes cost?",
    sizes={"full": Size(100_000, 200), "small": Size(20_000, 50), "tiny": Size(500, 5)},
    run=run,
)
