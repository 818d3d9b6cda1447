"""Commands that run a plugin end in time, whatever the plugin does."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from poller import errors
from poller.cli.direct import plugin_runner


async def answer() -> int:
    return 42


async def leave() -> None:
    raise SystemExit(3)


async def block() -> None:
    time.sleep(0.6)  # noqa: ASYNC251  that is the fault


def test_a_result_and_an_error_come_through() -> None:
    """The caller gets the plugin's result or its exception."""
    assert plugin_runner.run(answer(), 5.0) == 42
    with pytest.raises(SystemExit):
        plugin_runner.run(leave(), 5.0)


def test_a_plugin_that_blocks_the_loop_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says that the collector blocks."""
    monkeypatch.setattr(plugin_runner, "CLEAN_UP_S", 0.1)
    with pytest.raises(errors.CollectorCrashed, match="blocks"):
        plugin_runner.run(block(), 0.1)


def test_the_process_ends_though_a_thread_of_a_plugin_does_not() -> None:
    """The exit code and all output are as without that thread."""
    program = (
        "import asyncio, time\n"
        "from poller.cli.direct import plugin_runner\n"
        "async def work():\n"
        "    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)\n"
        "    return 'read'\n"
        "print(plugin_runner.run(work(), 5.0))\n"
        "plugin_runner.exit_process(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (7, "read\n")
