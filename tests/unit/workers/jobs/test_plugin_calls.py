"""Calls of plugin code: guarded against all that it raises, and under a time limit."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from poller.workers.jobs import plugin_calls
from poller.workers.jobs.plugin_calls import PluginCalls


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []

    class Log:
        def error(self, event: str, **facts: Any) -> None:
            said.append(facts)

    monkeypatch.setattr(plugin_calls, "log", Log())
    return said


def calls(limit_s: float = 10.0) -> PluginCalls:
    return PluginCalls(lambda text: text.replace("hunter2", "***"), limit_s)


def results(calls: PluginCalls, functions: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for group in calls.results("scopes", functions):
        found |= group
    return found


def broken() -> None:
    raise ValueError("the password is hunter2")


def test_a_job_that_fails_is_left_out_and_logged(lines: list[dict[str, Any]]) -> None:
    """SystemExit too; secrets are masked; the same fault is logged once a minute."""
    functions: dict[str, Callable[[], Any]] = {"good": lambda: [1], "bad": broken, "exit": sys.exit}
    made = calls()
    assert results(made, functions) == {"good": [1]}
    assert results(made, functions) == {"good": [1]}
    said = {line["job"]: line["error"] for line in lines}
    assert said == {"bad": "ValueError: the password is ***", "exit": "SystemExit"}
    assert len(lines) == 2


def test_a_job_that_hangs_is_not_called_again_until_it_returns(
    lines: list[dict[str, Any]],
) -> None:
    """The others are not delayed, and it is logged once with its place."""
    over = threading.Event()
    began: list[int] = []

    def hang() -> list[int]:
        began.append(1)
        over.wait(20)
        return [2]

    made = calls(0.2)
    groups = made.results("scopes", {"hanging": hang, "good": lambda: [1]})
    assert next(groups) == {"good": [1]}
    assert list(groups) == []
    assert results(made, {"hanging": hang, "good": lambda: [1]}) == {"good": [1]}
    assert len(began) == 1
    [line] = lines
    assert line["job"] == "hanging"
    assert "did not return within 0.2 s" in line["error"]
    assert "hang" in line["error"]

    over.set()
    while not results(made, {"hanging": hang}):
        time.sleep(0.01)
    assert len(began) == 2
