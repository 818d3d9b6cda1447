"""One poll of the collector on a fake link: its instants, and the clock of the device."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.engines.engine_protocol import NoReply, Page, Retry
from poller.collectors.snmp.read import change_detection
from poller.domain.failures.outcome import Result
from tests.unit.collectors.polls import polled
from tests.unit.collectors.snmp_device import X_TABLE, Device, Link


class SlowHandshake(Link):
    """A link to a device whose sysUpTime runs with the loop's clock."""

    def __init__(self, handshake_s: float) -> None:
        self._handshake_s = handshake_s

    async def handshake(self, retry: Retry) -> None:
        await asyncio.sleep(self._handshake_s)
        clock = 1000 + asyncio.get_running_loop().time()
        super().__init__(Device({1: "eth1", 2: "eth2"}, clock=clock).values())


class OneLinkPool:
    """Hands out one link at a time; only the first handshake is slow."""

    def __init__(self) -> None:
        self.waits = [0.3, 0.0]

    def acquire(self, *_: Any) -> Link:
        return SlowHandshake(self.waits.pop(0))

    def release(self, *_: Any, reusable: bool) -> None: ...


def test_a_slow_handshake_does_not_look_like_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """sysUpTime is read after the handshake, so the time before it must not count as passed."""
    monkeypatch.setattr(change_detection, "_SLACK_S", 0.15)

    async def run() -> bool:
        collector = SnmpCollector()
        collector._pool = OneLinkPool()  # type: ignore[assignment]
        memory: dict[str, Any] = {}
        community = Community.from_text("public")
        shortcuts = []
        for _ in range(2):
            await polled(collector, "127.0.0.1", community, memory, modules="if_mib")
            shortcuts.append(memory["snmp"].shortcut)
        return shortcuts[0] is not None and shortcuts[0] is shortcuts[1]

    assert asyncio.run(run())


class HalfSilent(Link):
    """A link to a device that is silent about one table."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        if X_TABLE.startswith(root):
            await asyncio.sleep(wait_s)
            raise NoReply("silence")
        return await super().page(cursor, root, repetitions, wait_s)


class HalfSilentPool(OneLinkPool):
    def acquire(self, *_: Any) -> Link:
        return HalfSilent(Device({1: "eth1"}).values())


def test_readings_have_the_instant_of_the_last_answer() -> None:
    """The tries of a silent table come after it; they take 0.2 and 0.3 s."""

    async def run() -> None:
        collector = SnmpCollector()
        collector._pool = HalfSilentPool()  # type: ignore[assignment]
        community = Community.from_text("public")
        now = asyncio.get_running_loop().time
        started = now()
        options = {"modules": "if_mib", "walks": 1, "timeout": 0.2, "retries": 1}
        report = await polled(collector, "127.0.0.1", community, **options)
        assert report.outcome.result is Result.PARTIAL
        assert started <= report.outcome.answered_mono < now() - 0.4

    asyncio.run(run())
