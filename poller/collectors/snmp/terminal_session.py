"""A few questions to one agent, for somebody at a terminal: exact types, answers as they come, nothing kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from poller import errors
from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.dns_cache import Resolver
from poller.collectors.snmp.engines import engine_choice
from poller.collectors.snmp.engines.engine_choice import Choice, Engines
from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.modules.oid_names import OidScope
from poller.collectors.snmp.options import SnmpOptions
from poller.collectors.snmp.read.request_size import Tuning
from poller.collectors.snmp.read.walker import Patience, Seen, Walker

_NO_MODULES = ModuleSet(())


class TerminalSession:
    """`sent` counts the requests, tries included."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker

    @property
    def sent(self) -> int:
        return self._walker.sent

    async def get(self, oids: Sequence[str]) -> dict[str, Row]:
        """By OID; those the agent does not have are missing. Raises DeviceErrors."""
        return {row[0]: row for row in await self._walker.get(oids)}

    async def walk(self, place: OidScope, seen: Seen) -> None:
        """Hands over the values there, a page at a time. Raises DeviceErrors, after what came before them."""
        if place.exact:
            seen(await self._walker.get([place.oid]))
        elif (error := (await self._walker.walk(place.oid, seen)).error) is not None:
            raise error


@asynccontextmanager
async def open_session(
    address: str, options: SnmpOptions, credential: Credential | None, budget_s: float
) -> AsyncIterator[TerminalSession]:
    """Introduced and ready; all of it must be over within the budget. Raises DeviceErrors."""
    deadline = asyncio.get_running_loop().time() + budget_s
    login = options.login(credential, _NO_MODULES)
    place = await Resolver().address(address)
    way = engine_choice.way_to(
        place,
        options.port,
        login.version,
        login.credential,
        login.context,
        _engine(options, login.credential),
    )
    kept = Engines()
    link = kept.take(way, login.credential)
    try:
        link.exact = True
        patience = Patience(options.timeout, options.retries, deadline)
        walker = Walker(
            link, patience, Tuning(options.max_repetitions), f"{address} port {options.port}"
        )
        await walker.begin()
        yield TerminalSession(walker)
    except errors.DeviceError as error:
        raise error.with_traceback(None) from None
    finally:
        link.close()
        kept.close()


def _engine(options: SnmpOptions, credential: Credential | None) -> Choice:
    """With SNMPv3 only pysnmp tells what kind of number it was."""
    return (
        "pysnmp" if options.engine == "auto" and isinstance(credential, SnmpV3) else options.engine
    )
