"""A PostgreSQL for one test that can be stopped, killed and started again with its data."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from poller.db import engine as sql
from tests.acceptance.valkey import free_port
from tests.conftest import _postgres_binaries

READY_WITHIN_S = 30


class Postgres:
    """A server without fsync: confirmed data outlives the process, not the host."""

    def __init__(self) -> None:
        self._binaries = _postgres_binaries()
        # Not below pytest's own directory, which is closed to the user that runs the server.
        self._directory = Path(tempfile.mkdtemp(prefix="poller-postgres-"))
        self._owner: dict[str, Any] = {"cwd": "/"}
        if os.geteuid() == 0:
            shutil.chown(self._directory, "postgres", "postgres")
            self._owner.update(user="postgres", group="postgres")
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._process: subprocess.Popen[bytes] | None = None
        make: list[str | Path] = [
            self._binaries / "initdb",
            "-D",
            self._data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
        ]
        subprocess.run(
            [*make, "--locale=C", "-N"], check=True, stdout=subprocess.DEVNULL, **self._owner
        )

    def start(self) -> None:
        """Start the server and wait until it responds."""
        serve: list[str | Path] = [
            self._binaries / "postgres",
            "-D",
            self._data,
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
        ]
        with (self._directory / "log").open("ab") as log:
            words: list[str | Path] = [*serve, "-k", self._directory, "-F"]
            self._process = subprocess.Popen(words, stdout=log, stderr=log, **self._owner)
        until = time.monotonic() + READY_WITHIN_S
        while not self._answers():
            assert time.monotonic() < until, (
                f"PostgreSQL did not start: {(self._directory / 'log').read_text()[-2000:]}"
            )
            time.sleep(0.05)

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the server at once, as a crash does: connections break, and the next start
        recovers.
        """
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Stop the server in order, without waiting for its clients."""
        self._end(signal.SIGINT)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self._directory, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _end(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(timeout=30)
            self._process = None

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "log").read_text()[-2000:]
        engine = sql.create(self.url)
        try:
            with engine.connect() as conn:
                return bool(conn.execute(sa.text("SELECT 1")).scalar())
        except sa.exc.OperationalError:
            return False
        finally:
            engine.dispose()
