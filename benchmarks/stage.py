"""The stage of a section: a directory, a server and processes, all removed at its end."""

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
#: Seconds for a process to end in good order. At the end of the stage, processes are killed.
PATIENCE_S, CLOSING_S = 60.0, 3.0


class Process:
    """A process of the stage. Its cost is measured from outside."""

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
        """Check that the process runs. Raises StoreUnavailable."""
        if not self._child.running:
            last = [
                line for line in self._log.read_text(errors="replace").splitlines() if line.strip()
            ][-3:]
            raise errors.StoreUnavailable(
                f"{self.name} ended during the benchmark", " / ".join(last)
            )


class Server(Process):
    """A Valkey server as `poller up` starts it: with a password and an append-only file."""

    def __init__(self, child: Child, log: Path, url: str) -> None:
        super().__init__(child, log)
        self.url = url
        self.redis = redis_client.connect(url)

    @property
    def memory_bytes(self) -> int:
        return int(self.info("memory")["used_memory"])

    @property
    def commands(self) -> int:
        """The number of commands processed so far, without this one."""
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
        """The server of the stage, started on first use."""
        folder = self.home / "valkey"
        role, url = embedded_server.prepare(folder, listen_ports.free_port())
        child = self._supervisor.add(role)
        embedded_server.wait_ready(url, child)
        return Server(child, self._log(role), url)

    @cached_property
    def services(self) -> Services:
        """The services on the stage's server and a SQLite file, shared with child processes.

        POLLER_* variables of the caller apply, too.
        """
        os.environ["POLLER_REDIS_URL"] = self.server.url
        made = Services(load())
        made.configure_logs("WARNING")
        migrate.upgrade(made.engine)
        return made

    def start(self, name: str, argv: Sequence[str], **env: str) -> Process:
        """Run a Python module of this source tree as a process."""
        role = Role(name, [sys.executable, *argv], {"PYTHONPATH": str(ROOT), **env})
        return Process(self._supervisor.add(role), self._log(role))

    def stop(self, process: Process) -> None:
        """Terminate a process and wait for its end."""
        self._supervisor.stop(lambda name: name == process.name, PATIENCE_S)
        self._supervisor.kill(lambda name: name == process.name)

    def close(self) -> None:
        self._supervisor.stop(lambda name: name != "valkey", CLOSING_S)
        self._supervisor.kill(lambda _: True)

    def _log(self, role: Role) -> Path:
        return self.home / "logs" / f"{role.name}.log"


@contextmanager
def stage() -> Iterator[Stage]:
    """Yield a stage in a temporary working directory, so that no poller.toml applies."""
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
