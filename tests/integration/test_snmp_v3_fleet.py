"""Each of 500 SNMPv3 agents is discovered once, not once per poll; its socket is reused."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from poller.collectors.credentials import SnmpV3
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Result
from poller.sim import fleet
from poller.sim.snmp.snmp_server import SnmpServer
from tests.unit.collectors.polls import polled

DEVICES = [
    replace(device, fault=fleet.Fault.NONE)
    for device in fleet.devices(500, snmp_share=1, faulty_share=0)
]
USER = SnmpV3.from_fields(
    {"username": fleet.USERNAME, "auth_password": fleet.PASSWORD, "priv_password": fleet.PASSWORD}
)


@pytest.mark.parametrize(("engine", "devices", "rounds"), [("gufo", 500, 5), ("exact", 50, 3)])
def test_each_agent_is_discovered_once(engine: str, devices: int, rounds: int) -> None:
    """The agents count their discoveries. Two targets of a device share one."""

    async def run() -> tuple[list[int], list[int]]:
        server, collector = SnmpServer(DEVICES), SnmpCollector()
        port, met, asked = server.open(0), [], []
        memories: list[dict[str, object]] = [{} for _ in range(devices)]
        for _ in range(rounds):
            before = server.requests
            jobs = [
                polled(
                    collector,
                    device.address,
                    USER,
                    memory,
                    port=port,
                    modules="system",
                    engine=engine,
                    timeout=20,
                )
                for device, memory in zip(DEVICES, memories, strict=False)
            ]
            outcomes = [drained.outcome for drained in await asyncio.gather(*jobs)]
            assert {outcome.result for outcome in outcomes} == {Result.OK}, outcomes[0].message
            met.append(server.discoveries)
            asked.append(server.requests - before)
        other_target = await polled(
            collector, DEVICES[0].address, USER, port=port, modules="if_mib", engine=engine
        )
        assert other_target.outcome.result is Result.OK
        met.append(server.discoveries)
        await collector.close()
        server.close()
        return met, asked

    met, asked = asyncio.run(run())
    assert met == [devices] * (rounds + 1)
    assert asked == [2 * devices] + [devices] * (rounds - 1)  # one GET each, and one discovery
