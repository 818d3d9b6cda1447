"""One SNMP poll, top to bottom: resolve, connect, read what is needed, map, hand over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.dns_cache import Resolver
from poller.collectors.snmp import snmp_discovery
from poller.collectors.snmp.engines import engine_choice
from poller.collectors.snmp.engines.engine_choice import Engines
from poller.collectors.snmp.engines.link_pool import Way
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.options import Login, SnmpOptions
from poller.collectors.snmp.read import change_signals, poll_read, reads
from poller.collectors.snmp.read.parallel_links import Hands
from poller.collectors.snmp.read.poll_links import Visit
from poller.collectors.snmp.read.poll_read import Wanted
from poller.collectors.snmp.target_memory import Memory


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
        options: SnmpOptions = poll.options
        module_set = module_catalog.select_cached(
            options.modules, options.config
        ) or await _module_set(options)
        memory = poll.memory.get("snmp")
        if (
            memory is None or memory.module_set is not module_set
        ):  # its first poll, or its file was edited
            memory = poll.memory["snmp"] = Memory.of(
                module_set, options.walk_settings(module_set.walk_params)
            )
        login = options.login(poll.credential, module_set)
        way = _way(await self._resolver.address(poll.address), options, login)
        try:
            taken = await self._visit(way, login, poll, memory)
        except api.DeviceError as error:
            known = self._engines.forget(way)
            if not (known and isinstance(error, api.DeviceAuthFailed | api.DeviceTimeout)):
                raise
            # The agent may have been replaced since: introduce ourselves anew before we believe it.
            taken = await self._visit(way, login, poll, memory)
        memory.tuning.end_poll()
        for item in taken:
            yield item

    async def _visit(
        self, way: Way, login: Login, poll: api.Poll, memory: Memory
    ) -> list[api.Yielded]:
        options: SnmpOptions = poll.options
        agent = f"{poll.address} port {options.port}"
        visit = Visit(self._engines, way, login.credential, memory, agent, poll.deadline)
        well = False
        try:
            hands = Hands(await visit.walker(), visit.walker, options.walks, memory.far)
            now = asyncio.get_running_loop().time()
            period = change_signals.period(now, options.refresh, poll.target_id)
            wanted = Wanted(
                options.modules,
                partial(_select, config=options.config),
                device_table.chooser(options.match, options.config),
            )
            items, well = await poll_read.take(hands, wanted, memory, now, period)
            memory.far = hands.took_long
            items.append(api.Traffic(hands.sent, hands.retried))
            return items
        except api.DeviceError as error:
            raise reads.without_frames(error) from None
        finally:
            visit.end(well)

    def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        return snmp_discovery.discover(poll)

    def help_texts(self, options: Any) -> Mapping[str, str]:
        names = options.modules or tuple(sorted(device_table.table(options.match).names()))
        return module_catalog.select(names, options.config).help

    def check_options(self, options: Any) -> None:
        options.check()

    def brings_credential(self, options: Any) -> bool:
        return bool(options.auth)

    async def close(self) -> None:
        self._engines.close()


def _way(address: str, options: SnmpOptions, login: Login) -> Way:
    return engine_choice.way_to(
        address, options.port, login.version, login.credential, login.context, options.engine
    )


async def _module_set(options: SnmpOptions) -> ModuleSet:
    """Of files that must be read first, beside the loop: a large one takes a moment."""
    return await asyncio.to_thread(_select, options.modules, options.config)


def _select(names: tuple[str, ...], config: tuple[str, ...]) -> ModuleSet:
    try:
        return module_catalog.select(names, config)
    except errors.ConfigError as error:
        raise api.OptionsUnusable(error.message, error.cause, error.hint) from None
