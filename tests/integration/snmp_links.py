"""Links to agents for tests: what a walk or a GET through one engine gives, on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from poller.collectors.credentials import Credential
from poller.collectors.snmp.engines import engine_choice
from poller.collectors.snmp.engines.engine_choice import Choice, Engines
from poller.collectors.snmp.engines.engine_protocol import Link, Row
from poller.collectors.snmp.read.request_size import Tuning
from poller.collectors.snmp.read.walker import Patience, Walked, Walker

T = TypeVar("T")


async def talk(
    choice: Choice,
    port: int,
    credential: Credential,
    act: Callable[[Walker, Link], Awaitable[T]],
    *,
    version: str = "2c",
    context: str = "",
    exact: bool = True,
    engine: Engines | None = None,
    timeout_s: float = 1.0,
    retries: int = 1,
    budget_s: float = 5.0,
    repetitions: int = 25,
) -> T:
    """One conversation with an agent on 127.0.0.1, as a poll has it; what `act` returns."""
    owned = engine is None
    using = engine or Engines()
    way = engine_choice.way_to("127.0.0.1", port, version, credential, context, choice)
    link = using.take(way, credential)
    link.exact = exact
    well = False
    try:
        deadline = asyncio.get_running_loop().time() + budget_s
        walker = Walker(
            link, Patience(timeout_s, retries, deadline), Tuning(repetitions), "the agent"
        )
        await walker.begin()
        result = await act(walker, link)
        well = True
        return result
    finally:
        using.give_back(way, link, well=well)
        if owned:
            using.close()


def walk(choice: Choice, port: int, credential: Credential, root: str, **how: Any) -> Walked:
    return asyncio.run(talk(choice, port, credential, lambda walker, _: walker.walk(root), **how))


def rows(choice: Choice, port: int, credential: Credential, root: str, **how: Any) -> list[Row]:
    """Of a walk that must not fail."""
    walked = walk(choice, port, credential, root, **how)
    assert walked.error is None, walked.error
    return walked.rows


def get(
    choice: Choice, port: int, credential: Credential, oids: Sequence[str], **how: Any
) -> list[Row]:
    return asyncio.run(talk(choice, port, credential, lambda walker, _: walker.get(oids), **how))
