"""A socket to an agent is reused by the next poll after a complete one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from poller.collectors import api
from poller.collectors.credentials import Community
from poller.collectors.poll_runner import run_poll
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.engines import link_pool
from poller.collectors.snmp.engines.link_pool import LinkPool
from poller.collectors.snmp.options import SnmpOptions
from poller.domain.failures.outcome import Outcome, Result
from poller.sim import fleet
from poller.sim.sim_process import Running, simulated

DEVICES = [
    replace(device, fault=fleet.Fault.NONE)
    for device in fleet.devices(3, snmp_share=1, faulty_share=0)
]


@pytest.fixture(scope="module")
def agents() -> Iterator[Running]:
    with simulated(DEVICES) as running:
        yield running


async def poll(collector: SnmpCollector, port: int, device: int = 0, **how: Any) -> Outcome:
    options = SnmpOptions(port=port, modules=("system",), **{"timeout": 0.2, "retries": 0, **how})
    deadline = asyncio.get_running_loop().time() + 5
    community = Community(community=SecretStr("public"))
    return await run_poll(
        collector, api.Poll(1, "d", DEVICES[device].address, options, community, deadline, {})
    )


def ports_of(collector: SnmpCollector) -> list[int]:
    return [link._socket.getsockname()[1] for link, _ in collector._pool._idle.values()]


def test_a_complete_poll_leaves_its_socket_to_the_next_poll(agents: Running) -> None:
    """One socket per device, whatever the number of polls."""

    async def polls() -> list[list[int]]:
        collector, seen = SnmpCollector(), []
        for _ in range(3):
            for device in range(2):
                assert (await poll(collector, agents.snmp, device)).result is Result.OK
            seen.append(sorted(ports_of(collector)))
        await collector.close()
        assert len(collector._pool) == 0
        return seen

    first, *others = asyncio.run(polls())
    assert len(first) == 2
    assert others == [first, first]


def test_parallel_polls_have_a_socket_each(agents: Running) -> None:
    """Only one of the sockets stays open."""

    async def polls() -> int:
        collector = SnmpCollector()
        done = await asyncio.gather(*(poll(collector, agents.snmp) for _ in range(5)))
        assert [outcome.result for outcome in done] == [Result.OK] * 5
        kept = len(collector._pool)
        await collector.close()
        return kept

    assert asyncio.run(polls()) == 1


def test_a_poll_that_failed_leaves_no_socket(agents: Running) -> None:
    """A late response to a failed poll must not reach the next poll."""

    async def polls() -> int:
        collector = SnmpCollector()
        agents.darken(DEVICES[0].site)
        assert (await poll(collector, agents.snmp)).result is Result.FAILED
        agents.darken()
        return len(collector._pool)

    assert asyncio.run(polls()) == 0


class Relay(asyncio.DatagramProtocol):
    """Relays between a link and a simulated agent, and can send datagrams of its own."""

    def __init__(self, agent: tuple[str, int]) -> None:
        self._agent = agent

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, address: Any) -> None:
        if address == self._agent:
            self.transport.sendto(data, self.asker)
        else:
            self.asker = address
            self.transport.sendto(data, self._agent)


def test_datagrams_between_two_polls_are_dropped(agents: Running) -> None:
    """A forged or late datagram on an idle socket costs no poll and no CPU."""

    async def polls() -> list[Result]:
        collector, loop = SnmpCollector(), asyncio.get_running_loop()
        agent = (DEVICES[0].address, agents.snmp)
        transport, relay = await loop.create_datagram_endpoint(
            lambda: Relay(agent), local_addr=(agent[0], 0)
        )
        port = transport.get_extra_info("sockname")[1]
        results = [(await poll(collector, port)).result]
        ((link, _),) = collector._pool._idle.values()
        for _ in range(200):
            transport.sendto(b"\x30\x03rubbish", relay.asker)
        await asyncio.sleep(0.1)
        with pytest.raises(BlockingIOError):
            link._socket.recv(1, socket.MSG_PEEK)
        transport.sendto(
            b"\x30\x03rubbish", relay.asker
        )  # one that the loop has not seen before the next poll
        results.append((await poll(collector, port)).result)
        await collector.close()
        transport.close()
        return results

    assert asyncio.run(polls()) == [Result.OK, Result.OK]


def test_the_number_of_idle_links_is_limited(agents: Running) -> None:
    """Idle links stay: devices that are polled in turn do not close the links of others."""

    async def polls() -> list[set[int]]:
        collector, seen = SnmpCollector(), []
        collector._pool = LinkPool(max_idle=2)
        for _ in range(3):
            for device in range(3):
                await poll(collector, agents.snmp, device)
            seen.append(set(ports_of(collector)))
        await collector.close()
        return seen

    first, *others = asyncio.run(polls())
    assert len(first) == 2
    assert others == [first, first]


def test_a_link_that_is_idle_for_long_is_closed(
    agents: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker polls its device now, or the device is gone."""

    async def polls() -> tuple[list[int], list[int]]:
        collector = SnmpCollector()
        collector._pool = LinkPool(max_idle=2)
        for device in (0, 1):
            await poll(collector, agents.snmp, device)
        before = ports_of(collector)
        monkeypatch.setattr(link_pool, "IDLE_S", 0.0)
        await poll(collector, agents.snmp, 2)
        after = ports_of(collector)
        await collector.close()
        return before, after

    before, after = asyncio.run(polls())
    assert len(after) == 1
    assert after[0] not in before


def test_links_of_an_ended_loop_are_not_used_on_another(agents: Running) -> None:
    """`poller collect` can run twice in a process."""
    collector = SnmpCollector()
    assert asyncio.run(poll(collector, agents.snmp)).result is Result.OK
    assert asyncio.run(poll(collector, agents.snmp)).result is Result.OK
