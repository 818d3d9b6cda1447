"""Where a section plays: a directory, a server and processes of its own, all gone when it ends."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from benchmarks import cpu
from poller import errors
from poller.bootstrap import Services
from poller.cli.up import embedded_server, listen_ports
from poller.cli.up.process_supervisor import Child, Role, Supervisor
from poller.db import migrate
from poller.settings import load
from poller.state import redis_client

ROOT = Path(__file__).parents[1]
#: For a process to end in good order; what is still there when the stage closes was not waited for.
PATIENCE_S, CLOSING_S = 60.0, 3.0


class Process:
    """A process of the stage; what it costs is counted from outside."""

    def __init__(self, child: Child, log: Path) -> None:
        self.name = child.role.name
        self._child = child
        self._log = log

    @property
    def pid(self) -> int:
        assert self._child.process is not None
        return self._child.process.pid

    @property
    def cpu_s(self) -> float:
        self.must_live()
        return cpu.tree_s(self.pid)

    def must_live(self) -> None:
        """A benchmark of a dead process would say that it is quick."""
        if not self._child.running:
            last = [
                line for line in self._log.read_text(errors="replace").splitlines() if line.strip()
            ][-3:]
            raise errors.StoreUnavailable(
                f"{self.name} ended during the benchmark", " / ".join(last)
            )


class Server(Process):
    """A Valkey of the stage's own, set up as `poller up` does it: with a password and an append-only file."""

    def __init__(self, child: Child, log: Path, url: str) -> None:
        super().__init__(child, log)
        self.url = url
        self.redis = redis_client.connect(url)

    @property
    def memory_bytes(self) -> int:
        return int(self.info("memory")["used_memory"])

    @property
    def commands(self) -> int:
        """Commands processed so far, without this question."""
        return int(self.info("stats")["total_commands_processed"])

    def info(self, part: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.redis.info(part)
        return answer


class Stage:
    def __init__(self, home: Path) -> None:
        self.home = home
        self._supervisor = Supervisor(home / "logs", lambda _who, _what: None)

    @cached_property
    def server(self) -> Server:
        """Started when first asked for."""
        folder = self.home / "valkey"
        role, url = embedded_server.prepare(folder, listen_ports.free_port())
        server = Server(self._supervisor.add(role), self._log(role), url)
        embedded_server.wait_ready(url)
        return server

    @cached_property
    def services(self) -> Services:
        """Ours, on the stage's server and a SQLite file. Children find the same; POLLER_* of the caller count, too."""
        os.environ["POLLER_REDIS_URL"] = self.server.url
        made = Services(load())
        made.configure_logs("WARNING")
        migrate.upgrade(made.engine)
        return made

    def start(self, name: str, argv: Sequence[str], **env: str) -> Process:
        """A Python module as a process: it finds this very source tree."""
        role = Role(name, [sys.executable, *argv], {"PYTHONPATH": str(ROOT), **env})
        return Process(self._supervisor.add(role), self._log(role))

    def stop(self, process: Process) -> None:
        """Ask it to end, and wait for that."""
        self._supervisor.stop(lambda name: name == process.name, PATIENCE_S)
        self._supervisor.kill(lambda name: name == process.name)

    def close(self) -> None:
        self._supervisor.stop(lambda name: name != "valkey", CLOSING_S)
        self._supervisor.kill(lambda _: True)

    def _log(self, role: Role) -> Path:
        return self.home / "logs" / f"{role.name}.log"


@contextmanager
def stage() -> Iterator[Stage]:
    """A clean stage in a temporary directory, which is also the working directory: no poller.toml counts."""
    before, environment = Path.cwd(), dict(os.environ)
    home = Path(tempfile.mkdtemp(prefix="poller-bench-"))
    os.chdir(home)
    for name in (
        "POLLER_CONFIG",
        "POLLER_DATABASE_URL",
        "POLLER_REDIS_URL_FILE",
        "POLLER_DATABASE_URL_FILE",
    ):
        os.environ.pop(name, None)
    os.environ["POLLER_HOME"] = str(home)
    made = Stage(home)
    try:
        yield made
    finally:
        made.close()
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)
        shutil.rmtree(home, ignore_errors=True)
