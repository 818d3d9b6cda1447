"""The subject of a conformance check: a collector, a device that it can read, and its options."""

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

#: Seconds for a poll of a device that answers.
AMPLE_S = 5.0
#: Seconds for a poll of a device that does not answer.
BRIEF_S = 0.5
#: Seconds until the sockets, threads and tasks of a finished poll must be gone.
SETTLE_S = 2.0
TICK_S = 0.02
#: Error codes that are the collector's own fault, regardless of the device.
FAULTS = (error_codes.COLLECTOR_CRASHED, error_codes.COLLECTOR_DIED, error_codes.COLLECTOR_BUSY)


class Failed(AssertionError):
    """A check failed. The text names the fault and the remedy."""


class Inapplicable(Exception):
    """A check does not apply to this collector. The text gives the reason."""


class Device:
    """A device that answers: its address, and the options that reach it (usually `port`)."""

    def __init__(self, address: str, **options: Any) -> None:
        self.address = address
        self.options = options


@dataclass(frozen=True)
class Subject:
    """A collector under test, and the device, options and credential to poll with.

    make: returns a new instance of the collector.
    port: the name of the option that holds the device's port; None for a collector without one.
    probe: whether the collector reports a device that is down by readings instead of an error.
    """

    make: Callable[[], Collector]
    device: Device
    options: Mapping[str, Any] = field(default_factory=dict)
    credential: Credential | None = None
    port: str | None = "port"
    probe: bool = False

    def checked(self, device: Device | None = None) -> Any:
        """Return the validated options for a device, as a worker has them."""
        device = device or self.device
        return self.make().Options.model_validate({**self.options, **device.options})

    def at(self, port: int) -> Device:
        """Return the device at another port of loopback. Raises Inapplicable."""
        if self.port is None:
            raise Inapplicable("the collector has no option for a port")
        return Device("127.0.0.1", **{**self.device.options, self.port: port})

    async def poll(
        self, device: Device | None = None, budget_s: float = AMPLE_S, **how: Any
    ) -> Seen:
        """Poll once as a worker does, and observe the collector.

        `how` may hold a collector, credential, memory and sessions to use instead of the defaults.
        """
        where = device or self.device
        ear = Ear(how.get("collector") or self.make())
        collector: Any = ear
        now = asyncio.get_running_loop().time()
        credential = how.get("credential", self.credential)
        memory = how.get("memory")
        if memory is None:
            memory = {}
        poll = Poll(
            target_id=1,
            device="device",
            address=where.address,
            options=self.checked(where),
            credential=credential,
            deadline=now + budget_s,
            memory=memory,
            sessions=how.get("sessions"),
        )
        async with _lag() as lag:
            drained = await poll_runner.run_and_report(collector, poll)
        return Seen(drained, ear, asyncio.get_running_loop().time() - now, lag.longest_s)


@dataclass(frozen=True)
class Seen:
    """The observed result of one poll."""

    drained: PollReport
    ear: Ear
    took_s: float
    lag_s: float  # the longest time in which the event loop could run nothing else

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
        """The outcome as text for an error message."""
        outcome = self.outcome
        if not outcome.error_code:
            return str(outcome.result)
        return f"{outcome.result} ({outcome.error_code}: {outcome.message})"


class Ear:
    """A collector whose `collect` is observed; every other attribute is the collector's own."""

    def __init__(self, collector: Collector) -> None:
        self.collector: Any = collector
        self.items: list[Any] = []
        self.raised: list[BaseException] = []
        self.at_work = 0  # polls that have started and not ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self.collector, name)

    def collect(self, poll: Poll) -> AsyncIterator[Yielded] | Iterator[Yielded]:
        if getattr(self.collector, "blocking", False):
            return self._blocking(poll)
        return self._async(poll)

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
    """The longest delay of a task that wakes up every TICK_S."""

    def __init__(self, now: float) -> None:
        self.longest_s = 0.0
        self._last_tick = now

    def tick(self, now: float) -> None:
        self.longest_s = max(self.longest_s, now - self._last_tick - TICK_S)
        self._last_tick = now


@contextlib.asynccontextmanager
async def _lag() -> AsyncIterator[_Lag]:
    """Measure how long the event loop is blocked while the context lasts."""
    loop = asyncio.get_running_loop()
    lag = _Lag(loop.time())

    async def keep_ticking() -> None:
        while True:
            await asyncio.sleep(TICK_S)
            lag.tick(loop.time())

    ticking = loop.create_task(keep_ticking())
    try:
        yield lag
        lag.tick(loop.time())
    finally:
        ticking.cancel()
        await asyncio.gather(ticking, return_exceptions=True)


@dataclass(frozen=True)
class Held:
    """The resources of this process: open files and sockets, threads, tasks of the running loop."""

    files: int
    threads: int
    tasks: int

    @classmethod
    def now(cls) -> Held:
        """Count the resources that are held now."""
        return cls(
            files=len(os.listdir("/proc/self/fd")),
            threads=threading.active_count(),
            tasks=len(asyncio.all_tasks()),
        )


async def settled(enough: Callable[[], bool], within_s: float = SETTLE_S) -> bool:
    """Wait until `enough` is true. Returns False if that takes longer than `within_s`."""
    until = time.monotonic() + within_s
    while not enough():
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.02)
    return True
