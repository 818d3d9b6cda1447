"""`poller top` in a real terminal: it draws, follows keys, and leaves the terminal as it was."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time

from poller.bootstrap import Services
from poller.db.inventory import imports
from tests.integration import test_target_pages as inventory

WITHIN_S = 60


def test_the_fleet_is_shown_filtered_and_left(services: Services, valkey_url: str) -> None:
    """A typed filter shows its devices; q prints the commands that do the same."""
    imports.apply_import(services.engine, [inventory.row(number) for number in range(60)])
    inventory.place(services)
    main, terminal = pty.openpty()
    environment = {**os.environ, "POLLER_REDIS_URL": valkey_url, "TERM": "xterm"}
    environment |= {"POLLER_HOME": str(services.settings.home), "COLUMNS": "120", "LINES": "40"}
    command = [sys.executable, "-m", "poller", "top"]
    process = subprocess.Popen(
        command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    try:
        until(main, "failing devices")
        os.write(main, b"/sw-0\r")
        until(main, "that match sw-0")
        os.write(main, b"\r")
        until(main, "sw-03/snmp:")
        os.write(main, b"q")
        until(main, "poller why sw-03")
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        os.close(main)


def until(terminal: int, words: str) -> None:
    """Read the terminal until it has these words."""
    seen = ""
    deadline = time.monotonic() + WITHIN_S
    waiting = select.poll()
    waiting.register(terminal, select.POLLIN)
    while words not in seen:
        assert time.monotonic() < deadline, seen[-2000:]
        if waiting.poll(1_000):
            seen += os.read(terminal, 65_536).decode(errors="replace")


def test_without_a_terminal_another_command_is_named() -> None:
    """A pipe gets an error with the command for programs."""
    command = [sys.executable, "-m", "poller", "top"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WITHIN_S, check=False)
    assert done.returncode == 2
    assert "poller status --failing --json" in done.stderr
