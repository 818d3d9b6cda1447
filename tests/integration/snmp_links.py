"""Links to agents for tests: one walk or GET through one engine, on its own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from poller.collectors.credentials import Credential
from poller.collectors.snmp.engines import link_pool
from poller.collectors.snmp.engines.engine_protocol import Link, Row
from poller.collectors.snmp.engines.link_pool import EngineOption, LinkPool
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walked, Walker

T = TypeVar("T")


async def talk(
    engine: EngineOption,
    port: int,
    credential: Credential,
    act: Callable[[Walker, Link], Awaitable[T]],
    *,
    version: str = "2c",
    context: str = "",
    exact: bool = True,
    pool: LinkPool | None = None,
    timeout_s: float = 1.0,
    retries: int = 1,
    budget_s: float = 5.0,
    repetitions: int = 25,
) -> T:
    """The result of `act` on a walker and link to an agent on 127.0.0.1, as in a poll."""
    owned = pool is None
    if pool is None:
        pool = LinkPool()
    key = link_pool.link_key("127.0.0.1", port, version, credential, context, engine)
    link = pool.acquire(key, credential)
    link.exact = exact
    well = False
    try:
        deadline = asyncio.get_running_loop().time() + budget_s
        walker = Walker(
            link, RetryPolicy(timeout_s, retries, deadline), RequestSizes(repetitions), "the agent"
        )
        await walker.handshake()
        result = await act(walker, link)
        well = True
        return result
    finally:
        pool.release(key, link, reusable=well)
        if owned:
            pool.close()


def walk(engine: EngineOption, port: int, credential: Credential, root: str, **how: Any) -> Walked:
    return asyncio.run(talk(engine, port, credential, lambda walker, _: walker.walk(root), **how))


def rows(
    engine: EngineOption, port: int, credential: Credential, root: str, **how: Any
) -> list[Row]:
    """The rows of a walk that must not fail."""
    walked = walk(engine, port, credential, root, **how)
    assert walked.error is None, walked.error
    return walked.rows


def get(
    engine: EngineOption, port: int, credential: Credential, oids: Sequence[str], **how: Any
) -> list[Row]:
    return asyncio.run(talk(engine, port, credential, lambda walker, _: walker.get(oids), **how))
