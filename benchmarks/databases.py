"""The databases of a measurement: SQLite and, if installed, a private PostgreSQL."""

from __future__ import annotations

import glob
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import progress
from benchmarks.stage import Stage


@contextmanager
def databases(stage: Stage, name: str) -> Iterator[list[tuple[str, int | None]]]:
    """Yield the URL of each database, and the process id of its server."""
    found: list[tuple[str, int | None]] = [(f"sqlite:///{stage.home / name}.db", None)]
    if not (shutil.which("initdb") or glob.glob("/usr/lib/postgresql/*/bin/initdb")):
        progress.step("PostgreSQL is not installed: SQLite only")
        yield found
        return
    from tests.acceptance.postgres import Postgres

    server = Postgres()
    try:
        server.start()
        yield [*found, (server.url, server.pid)]
    finally:
        server.remove()
