"""One poll of the collector on a fake link: its instants, and the clock of the device."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from poller.collectors.credentials import Community
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.engines.engine_protocol import Retry
from poller.collectors.snmp.read import change_detection
from tests.unit.collectors.polls import polled
from tests.unit.collectors.snmp_device import Device, Link


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
