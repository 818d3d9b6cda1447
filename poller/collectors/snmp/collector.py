"""One SNMP poll, top to bottom: choose modules, resolve, connect, read, map, yield."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, ClassVar

from poller import errors
from poller.collectors import api
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.dns_cache import Resolver
from poller.collectors.memory import answer_budget
from poller.collectors.memory.error_frames import drop_frames
from poller.collectors.snmp import snmp_discovery
from poller.collectors.snmp.engines import link_pool
from poller.collectors.snmp.engines.engine_protocol import Link
from poller.collectors.snmp.engines.link_pool import LinkKey, LinkPool
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.options import Login, SnmpOptions
from poller.collectors.snmp.read import change_detection, poll_read
from poller.collectors.snmp.read.poll_links import ParallelWalkers, PollLinks
from poller.collectors.snmp.read.poll_read import TargetMemory, TargetModules
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walker


class SnmpCollector:
    """SNMP v1, v2c and v3. Modules in snmp_exporter's language say what to read."""

    name: ClassVar[str] = "snmp"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = SnmpOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Community, SnmpV3)

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._pool = LinkPool()

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        options: SnmpOptions = poll.options
        module_set = module_catalog.select_cached(options.modules, options.config)
        if module_set is None:
            module_set = await _load_modules(options)
        memory = _memory(poll, module_set)

        login = options.login(poll.credential, module_set)
        address = await self._resolver.address(poll.address)
        key = _link_key(address, options, login)

        was_known = key.version == "3" and self._pool.knows_agent(key)
        try:
            items = await self._read(key, login, poll, memory)
        except api.DeviceError as error:
            self._pool.forget_agent(key)
            silent = isinstance(error, api.DeviceAuthFailed | api.DeviceTimeout)
            if not (silent and was_known and _has_time(poll, memory)):
                raise
            # The agent may have been replaced: discover its engine before the error counts.
            items = await self._read(key, login, poll, memory)

        memory.sizes.end_poll()
        for item in items:
            yield item

    async def _read(
        self, key: LinkKey, login: Login, poll: api.Poll, memory: TargetMemory
    ) -> list[api.Yielded]:
        """Connect, read and map. Raises DeviceErrors."""
        options: SnmpOptions = poll.options
        links = PollLinks(
            self._pool,
            key,
            login.credential,
            partial(_new_walker, poll=poll, memory=memory),
            exact=not memory.shapes.types_learned,
            codec_only=memory.codec_only,
        )

        complete = False
        try:
            first = await links.open_walker()
            walkers = ParallelWalkers(first, links.open_walker, options.walks, memory.slow)
            # After the handshake: the device's sysUpTime is compared with this instant.
            now = asyncio.get_running_loop().time()
            period = change_detection.refresh_period(now, options.refresh, poll.target_id)
            items, complete = await poll_read.read(
                walkers, _modules(options), memory, now, period, options.resting, poll.is_behind
            )
            memory.slow = walkers.is_slow
            items.append(api.Traffic(walkers.sent, walkers.retried, walkers.answered_mono))
            return items
        except api.DeviceError as error:
            raise drop_frames(error) from None
        finally:
            memory.codec_only = links.codec_only
            links.release(reusable=complete)

    def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        """Suggest the target that the agent at this address should have."""
        return snmp_discovery.discover(poll)

    def help_texts(self, options: Any) -> Mapping[str, str]:
        """Help text of each metric, by its exposed name."""
        names: tuple[str, ...] = options.modules
        if not names:
            table = device_table.table(options.match)
            names = tuple(sorted(table.names()))
        module_set = module_catalog.select(names, options.config)
        return module_set.help

    def check_options(self, options: Any) -> None:
        options.check()

    def brings_credential(self, options: Any) -> bool:
        return bool(options.auth)

    async def close(self) -> None:
        self._pool.close()


def _has_time(poll: api.Poll, memory: TargetMemory) -> bool:
    """Whether an agent may answer once more before the deadline."""
    left_s = poll.deadline - asyncio.get_running_loop().time()
    return left_s > memory.walk_settings.timeout_s


def _memory(poll: api.Poll, module_set: ModuleSet) -> TargetMemory:
    """The target's memory; a new one for its first poll, and after its module file was edited."""
    memory: TargetMemory | None = poll.memory.get("snmp")
    if memory is not None and memory.module_set is module_set:
        return memory

    settings = poll.options.walk_settings(module_set.walk_params)
    memory = TargetMemory(module_set, settings, RequestSizes(settings.max_repetitions))
    poll.memory["snmp"] = memory
    return memory


def _link_key(address: str, options: SnmpOptions, login: Login) -> LinkKey:
    return link_pool.link_key(
        address,
        options.port,
        login.version,
        login.credential,
        login.context,
        options.engine,
    )


def _new_walker(link: Link, poll: api.Poll, memory: TargetMemory) -> Walker:
    """A walker with the target's timeouts and its learned request sizes."""
    settings = memory.walk_settings
    policy = RetryPolicy(settings.timeout_s, settings.retries, poll.deadline)
    agent = f"{poll.address} port {poll.options.port}"
    hold = partial(answer_budget.shared.add, poll)
    disorder = settings.allow_nonincreasing_oids
    return Walker(link, policy, memory.sizes, agent, disorder, hold)


def _modules(options: SnmpOptions) -> TargetModules:
    """The modules of a target; nothing is read before they are needed."""
    select = partial(_select, config=options.config)
    choose = partial(_choose, options=options)
    return TargetModules(options.modules, select, choose)


def _choose(object_id: str, descr: str, options: SnmpOptions) -> tuple[str, ...]:
    """Module names for a device, by our table and the operator's."""
    choose = device_table.chooser(options.match, options.config)
    return choose(object_id, descr)


async def _load_modules(options: SnmpOptions) -> ModuleSet:
    """Read the module files in a thread: a large file would stall the event loop."""
    return await asyncio.to_thread(_select, options.modules, options.config)


def _select(names: tuple[str, ...], config: tuple[str, ...]) -> ModuleSet:
    """The module set of these names. Raises OptionsUnusable for a broken module file."""
    try:
        return module_catalog.select(names, config)
    except errors.ConfigError as error:
        raise api.OptionsUnusable(error.message, error.cause, error.hint) from None
