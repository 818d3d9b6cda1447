"""A collector that follows a script, run_script as a worker does it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

from poller.collectors import api, poll_runner
from poller.collectors.credentials import Community, Credential
from poller.domain.failures.outcome import Outcome
from poller.domain.metrics.reading import Reading

SECRET = "s3cr3t-community"


ONE = Reading("one", 1.0)


class Scripted:
    """A collector whose `collect` is the script of a test."""

    name: ClassVar[str] = "scripted"
    api_version: ClassVar[int] = 1
    Options: ClassVar[type[api.Options]] = api.Options
    credentials: ClassVar[tuple[type[Credential], ...]] = ()

    def __init__(self, script: Callable[[api.Poll], Any]) -> None:
        self._script = script

    def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        made: AsyncIterator[api.Yielded] = self._script(poll)
        return made


def poll(memory: dict[str, Any] | None = None, seconds: float = 5) -> api.Poll:
    deadline = asyncio.get_running_loop().time() + seconds
    credential = Community.from_text(SECRET)
    return api.Poll(
        1, "device", "10.0.0.1", None, credential, deadline, {} if memory is None else memory
    )


def run_script(
    script: Callable[[api.Poll], Any], seconds: float = 5, memory: dict[str, Any] | None = None
) -> Outcome:
    async def run() -> Outcome:
        return await poll_runner.run_poll(Scripted(script), poll(memory, seconds), grace_s=0.05)

    return asyncio.run(run())


def yielding(*items: object) -> Callable[[api.Poll], AsyncIterator[Any]]:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        for item in items:
            yield item

    return script


def raising(error: BaseException, *before: object) -> Callable[[api.Poll], AsyncIterator[Any]]:
    async def script(_: api.Poll) -> AsyncIterator[Any]:
        for item in before:
            yield item
        raise error

    return script


def names(outcome: Outcome) -> list[str]:
    return [reading.name for reading in outcome.readings or ()]
