"""A collector that breaks the contract is logged by name with its traceback, once a minute."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from poller.collectors import api, misbehaviour_log
from poller.collectors.poll_runner import run_poll


class Plugin:
    name: ClassVar[str] = "acme"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    Options = api.Options

    def __init__(self, error: BaseException | None) -> None:
        self._error = error

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if self._error is not None:
            raise self._error
        for _ in range(2):  # once for the deadline, once for who tidies up behind this test
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                continue
        yield api.Reading("x", 1.0)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """The log starts empty."""
    said: dict[Any, Any] = {}
    monkeypatch.setattr(misbehaviour_log, "_logged", said)
    return said


def polled(error: BaseException | None, times: int = 1) -> None:
    async def poll() -> None:
        for _ in range(times):
            deadline = asyncio.get_running_loop().time() + 0.05
            given = api.Poll(1, "d", "127.0.0.1", api.Options(), None, deadline, {})
            await run_poll(Plugin(error), given, grace_s=0.05)

    asyncio.run(poll())


def test_a_crash_is_logged_once_with_name_and_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The second crash is only counted; another kind of crash is logged."""
    polled(KeyError("x"), times=5)
    polled(ValueError("y"))
    records = [record for record in caplog.records if record.message == "collector_crashed"]
    assert [record.collector for record in records] == ["acme", "acme"]
    assert [record.exc_info[0] for record in records if record.exc_info] == [KeyError, ValueError]


def test_after_a_minute_it_is_logged_again_with_the_suppressed_count(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line states how many lines were suppressed."""
    polled(KeyError("x"), times=5)
    monkeypatch.setattr(misbehaviour_log, "_INTERVAL_S", 0.0)
    polled(KeyError("x"))
    assert [record.unsaid_since_the_last for record in caplog.records] == [0, 4]


def test_one_that_ignores_its_cancellation_is_named(caplog: pytest.LogCaptureFixture) -> None:
    """The poll is cut off, and the log names the collector that still runs."""
    polled(None)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert (record.message, record.collector) == ("collector_ignored_cancellation", "acme")


def test_a_devices_trouble_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A failure of the device is a result, not a log line."""
    polled(api.DeviceTimeout("no answer"))
    assert caplog.records == []


def test_memory_is_bounded(forgotten: dict[Any, Any]) -> None:
    """A plugin may make up a new class for every crash."""
    for number in range(1000):
        misbehaviour_log.crashed("acme", type(f"Error{number}", (Exception,), {})())
    assert len(forgotten) <= 256
