"""What a conformance check works on: a collector, a device it can read, and a way to poll it as a worker does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from poller.collectors import poll_runner
from poller.collectors.api import Collector, Credential, Poll, Yielded
from poller.collectors.poll_runner import PollReport
from poller.domain.failures import error_codes
from poller.domain.failures.outcome import Outcome, Result

#: What a poll of a device that answers may take.
AMPLE_S = 5.0
#: What a poll of one that does not is given.
BRIEF_S = 0.5
#: How long what a poll left behind may take to go away.
SETTLE_S = 2.0
TICK_S = 0.02
#: The collector's own fault, whatever the device did.
FAULTS = (error_codes.COLLECTOR_CRASHED, error_codes.COLLECTOR_DIED, error_codes.COLLECTOR_BUSY)


class Failed(AssertionError):
    """A check failed; the text tells the author what was seen, and what to do."""


class Inapplicable(Exception):
    """There is nothing to check here; the text says why."""


class Device:
    """Where a device answers: its address, and the options that lead there (usually `port`)."""

    def __init__(self, address: str, **options: Any) -> None:
        self.address = address
        self.options = options


@dataclass(frozen=True)
class Subject:
    """`port` is the option that says where the device listens: None for a collector that has no such thing.

    A `probe` reports a device that is down by readings, not by an error.
    """

    make: Callable[[], Collector]
    device: Device
    options: Mapping[str, Any] = field(default_factory=dict)
    credential: Credential | None = None
    port: str | None = "port"
    probe: bool = False

    def checked(self, device: Device | None = None) -> Any:
        """The options as a worker has them."""
        return self.make().Options.model_validate(
            {**self.options, **(device or self.device).options}
        )

    def at(self, port: int) -> Device:
        """Somebody else at that port of loopback. Raises Inapplicable."""
        if self.port is None:
            raise Inapplicable(
                "the collector has no option for a port, so that it can meet no other device"
            )
        return Device("127.0.0.1", **{**self.device.options, self.port: port})

    async def poll(
        self, device: Device | None = None, budget_s: float = AMPLE_S, **how: Any
    ) -> Seen:
        """Poll once, and see everything. `how`: collector, credential, memory, sessions."""
        where = device or self.device
        ear = Ear(how.get("collector") or self.make())
        collector: Any = ear
        now = asyncio.get_running_loop().time()
        credential = how.get("credential", self.credential)
        memory = how.get("memory")
        poll = Poll(
            1, "device", where.address, self.checked(where), credential, now + budget_s,
            {} if memory is None else memory, how.get("sessions"),
        )  # fmt: skip
        async with _lag() as lag:
            drained = await poll_runner.run_and_report(collector, poll)
        return Seen(drained, ear, asyncio.get_running_loop().time() - now, lag.longest_s)


@dataclass(frozen=True)
class Seen:
    drained: PollReport
    ear: Ear
    took_s: float
    lag_s: float  # the longest time in which nothing else could run on the loop

    @property
    def outcome(self) -> Outcome:
        return self.drained.outcome

    @property
    def is_ok(self) -> bool:
        return self.outcome.result is Result.OK

    @property
    def is_own_fault(self) -> bool:
        return self.outcome.error_code in FAULTS

    @property
    def told(self) -> str:
        """What became of it, for a sentence."""
        outcome = self.outcome
        return f"{outcome.result}" + (
            f" ({outcome.error_code}: {outcome.message})" if outcome.error_code else ""
        )


class Ear:
    """The collector as it is, but for an ear at its `collect`."""

    def __init__(self, collector: Collector) -> None:
        self.collector: Any = collector
        self.items: list[Any] = []
        self.raised: list[BaseException] = []
        self.at_work = 0  # polls that began and did not end

    def __getattr__(self, name: str) -> Any:
        return getattr(self.collector, name)

    def collect(self, poll: Poll) -> AsyncIterator[Yielded] | Iterator[Yielded]:
        return (
            self._blocking(poll)
            if getattr(self.collector, "blocking", False)
            else self._async(poll)
        )

    async def _async(self, poll: Poll) -> AsyncIterator[Yielded]:
        with self._listening():
            async with contextlib.aclosing(self.collector.collect(poll)) as stream:
                async for item in stream:
                    self.items.append(item)
                    yield item

    def _blocking(self, poll: Poll) -> Iterator[Yielded]:
        with self._listening(), contextlib.closing(self.collector.collect(poll)) as stream:
            for item in stream:
                self.items.append(item)
                yield item

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        self.at_work += 1
        try:
            yield
        except BaseException as error:
            self.raised.append(error)
            raise
        finally:
            self.at_work -= 1


class _Lag:
    """Seconds in which nothing else could run."""

    def __init__(self, now: float) -> None:
        self.longest_s = 0.0
        self._turn = now

    def turn(self, now: float) -> None:
        self.longest_s = max(self.longest_s, now - self._turn - TICK_S)
        self._turn = now


@contextlib.asynccontextmanager
async def _lag() -> AsyncIterator[_Lag]:
    """Does anybody keep the loop to himself?"""
    loop = asyncio.get_running_loop()
    lag = _Lag(loop.time())

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_S)
            lag.turn(loop.time())

    ticking = loop.create_task(tick())
    try:
        yield lag
        lag.turn(loop.time())
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)


@dataclass(frozen=True)
class Held:
    """What this process holds: files and sockets, threads, and tasks of the running loop."""

    files: int
    threads: int
    tasks: int

    @classmethod
    def now(cls) -> Held:
        return cls(
            len(os.listdir("/proc/self/fd")), threading.active_count(), len(asyncio.all_tasks())
        )


async def settled(enough: Callable[[], bool], within_s: float = SETTLE_S) -> bool:
    """Wait until it is so, for a moment."""
    until = time.monotonic() + within_s
    while not enough():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True
