"""One SNMP poll, top to bottom: resolve, connect, read what is needed, map, hand over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from poller.collectors import api
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp import catalog, engines, freshness, reading, taking
from poller.collectors.snmp.engines import Engines
from poller.collectors.snmp.hands import Hands
from poller.collectors.snmp.links import Way
from poller.collectors.snmp.memory import Memory
from poller.collectors.snmp.options import SnmpOptions
from poller.collectors.snmp.resolving import Resolver
from poller.collectors.snmp.tuning import Tuning
from poller.collectors.snmp.visit import Visit
from poller.collectors.snmp.walker import Patience


class SnmpCollector:
    """SNMP v1, v2c and v3, told what to read by modules in snmp_exporter's language."""

    name: ClassVar[str] = "snmp"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = SnmpOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Community, SnmpV3)

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._engines = Engines()

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        memory = poll.memory.get("snmp")
        if memory is None:
            memory = poll.memory["snmp"] = Memory(Tuning(poll.options.max_repetitions))
        way = _way(await self._resolver.address(poll.address), poll)
        try:
            taken = await self._visit(way, poll, memory)
        except api.DeviceError as error:
            known = self._engines.forget(way)
            if not (known and isinstance(error, api.DeviceAuthFailed | api.DeviceTimeout)):
                raise
            # The agent may have been replaced since: introduce ourselves anew before we believe it.
            taken = await self._visit(way, poll, memory)
        memory.tuning.end_poll()
        for item in taken:
            yield item

    async def _visit(self, way: Way, poll: api.Poll, memory: Memory) -> list[api.Yielded]:
        options: SnmpOptions = poll.options
        patience = Patience(options.timeout, options.retries, poll.deadline)
        agent = f"{poll.address} port {options.port}"
        visit = Visit(self._engines, way, poll.credential, patience, memory, agent)
        well = False
        try:
            hands = Hands(await visit.walker(), visit.walker, options.walks, memory.far)
            now = asyncio.get_running_loop().time()
            period = freshness.period(now, options.refresh, poll.target_id)
            items, well = await taking.take(hands, catalog.select(options.modules), memory, now, period)
            memory.far = hands.took_long
            return items
        except api.DeviceError as error:
            raise reading.without_frames(error) from None
        finally:
            visit.end(well)

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return catalog.select(options.modules).help

    async def close(self) -> None:
        self._engines.close()


def _way(address: str, poll: api.Poll) -> Way:
    options: SnmpOptions = poll.options
    return engines.way_to(address, options.port, options.version, poll.credential, options.context, options.engine)
