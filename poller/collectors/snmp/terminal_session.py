"""A session with one agent for a command at a terminal: exact types, and no cache."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from poller import errors
from poller.collectors.credentials import Credential
from poller.collectors.dns_cache import Resolver
from poller.collectors.snmp.engines import link_pool
from poller.collectors.snmp.engines.link_pool import LinkPool
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.modules.oid_names import OidScope
from poller.collectors.snmp.options import SnmpOptions
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import OnRows, RetryPolicy, Walker
from poller.collectors.snmp.wire.value_types import Value

_NO_MODULES = ModuleSet(())


class TerminalSession:
    """An open session with an agent."""

    def __init__(self, walker: Walker) -> None:
        self._walker = walker

    @property
    def sent(self) -> int:
        """Requests sent so far, retries included."""
        return self._walker.sent

    async def get(self, oids: Sequence[str]) -> dict[str, Value]:
        """Return values by OID, without the OIDs the agent does not have. Raises DeviceErrors."""
        return dict(await self._walker.get(oids))

    async def walk(self, scope: OidScope, on_page: OnRows) -> None:
        """Call `on_page` with each page of values in the scope.

        Raises DeviceErrors, after the pages that came before the error.
        """
        if scope.exact:
            on_page(await self._walker.get([scope.oid]))
            return

        walked = await self._walker.walk(scope.oid, on_page)
        if walked.error is not None:
            raise walked.error


@asynccontextmanager
async def open_session(
    address: str,
    options: SnmpOptions,
    credential: Credential | None,
    budget_s: float,
) -> AsyncIterator[TerminalSession]:
    """Open a session that must be over within the budget.

    Raises DeviceErrors.
    """
    deadline = asyncio.get_running_loop().time() + budget_s
    login = options.login(credential, _NO_MODULES)
    key = link_pool.link_key(
        await Resolver().address(address),
        options.port,
        login.version,
        login.credential,
        login.context,
        options.engine,
    )
    pool = LinkPool()
    link = pool.acquire(key, login.credential)
    try:
        link.exact = True
        policy = RetryPolicy(options.timeout, options.retries, deadline)
        sizes = RequestSizes(options.max_repetitions)
        walker = Walker(link, policy, sizes, f"{address} port {options.port}")
        await walker.handshake()
        yield TerminalSession(walker)
    except errors.DeviceError as error:
        raise error.with_traceback(None) from None
    finally:
        link.close()
        pool.close()
