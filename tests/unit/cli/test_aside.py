"""Commands that run a plugin end in time, whatever it does, and say what it was."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from poller import errors
from poller.cli import plugin_runner
from poller.cli.commands import discover
from poller.collectors import api


async def answer() -> int:
    return 42


async def leave() -> None:
    raise SystemExit(3)


async def block() -> None:
    time.sleep(0.6)  # noqa: ASYNC251  that is the fault


def test_a_result_and_an_error_come_through() -> None:
    assert plugin_runner.run(answer(), 5.0) == 42
    with pytest.raises(SystemExit):
        plugin_runner.run(leave(), 5.0)


def test_one_that_keeps_the_loop_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_runner, "TIDY_S", 0.1)
    with pytest.raises(errors.CollectorCrashed, match="blocks"):
        plugin_runner.run(block(), 0.1)


def test_the_process_ends_though_a_thread_of_a_plugin_does_not() -> None:
    """With the exit code it would have had, and everything it had said."""
    program = (
        "import asyncio, time\n"
        "from poller.cli import plugin_runner\n"
        "async def work():\n"
        "    asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)\n"
        "    return 'read'\n"
        "print(plugin_runner.run(work(), 5.0))\n"
        "plugin_runner.leave(7)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout) == (7, "read\n")


class Finder:
    """Suggests whatever its test says."""

    name = "finder"

    def __init__(self, deed: str) -> None:
        self._deed = deed

    async def discover(self, poll: api.Poll) -> AsyncIterator[Any]:
        if self._deed == "rubbish":
            yield 5
        if self._deed == "unsayable":
            yield api.Suggestion({"x": object()}, "it might")
        if self._deed == "exit":
            raise SystemExit(3)
        if self._deed == "cancelled":
            raise asyncio.CancelledError
        while self._deed == "endless":
            yield api.Suggestion({}, "again")
        if self._deed == "deaf":
            for _ in range(2):
                try:
                    await asyncio.sleep(0.5)
                except asyncio.CancelledError:
                    continue
        yield api.Suggestion({"port": 1}, "it answers")


@pytest.mark.parametrize(
    ("deed", "reason"),
    [
        ("rubbish", "it suggests a int"),
        ("unsayable", "not JSON serializable"),
        ("exit", "SystemExit: 3"),
        ("cancelled", "CancelledError"),
        ("deaf", "no answer within 0.2 s"),
    ],
)
def test_one_that_discovers_badly_is_told_and_the_others_are_heard(deed: str, reason: str) -> None:
    asked: Any = [Finder(deed), Finder("")]
    asked[0].name = "odd"
    work = discover._ask_all(
        "127.0.0.1",
        asked,
        {"odd": 1, "finder": 1},
        {"odd": [("", None)], "finder": [("", None)]},
        0.2,
    )
    [odd, good] = plugin_runner.run(work, 5.0)
    found = {
        "collector": "finder",
        "options": {"port": 1},
        "reason": "it answers",
        "credential": "",
    }
    assert good == ("finder", [found], "")
    assert odd[:2] == ("odd", [])
    assert reason in odd[2]


def test_one_that_suggests_without_end_is_cut_off() -> None:
    finder: Any = Finder("endless")
    [(_, found, _)] = plugin_runner.run(
        discover._ask_all("127.0.0.1", [finder], {"finder": 1}, {"finder": [("", None)]}, 5.0), 10.0
    )
    assert len(found) == 100
