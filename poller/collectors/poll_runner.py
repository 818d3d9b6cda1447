"""Runs one poll of one collector to its end, or to its deadline, and says what became of it.

The only place where a collector is called. Whatever it does - hang, swallow its cancellation, raise
anything, yield rubbish - the answer is an `Outcome`, and it comes in time.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poller import errors
from poller.collectors import blocking_adapter, misbehaviour_log, yielded_readings
from poller.collectors.api import Collector, Credential, PartFailed, Poll, Traffic
from poller.domain.failures import outcome
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import ReadingSet

#: Shorter ones are ordinary words and letters: masking these would garble every sentence, and give them away.
SHORTEST_SECRET = 6

#: How long a cancelled collector may tidy up before it is left to itself.
GRACE_S = 0.5

#: So many readings in a row are taken before others have their turn.
BREATH = 64

#: More are not a device but a mistake, of which nothing is kept. A reading set counts as one; how much may be in these
#: says `gathering.MOST_SERIES`.
MOST_ITEMS = 50_000

#: Collectors that ignored their cancellation. Kept referenced (else the loop forgets them), counted, never awaited.
_abandoned: set[asyncio.Task[None]] = set()


def abandoned() -> int:
    """How many polls of this process were cut off and still run."""
    return len(_abandoned)


async def drain(
    collector: Collector, poll: Poll, budget_s: float | None = None, grace_s: float = GRACE_S
) -> Outcome:
    """Poll once. Never raises but for the caller's own cancellation; ends by `poll.deadline` + `grace_s`.

    With `budget_s` the poll ends that many seconds from now, if that is before `poll.deadline`.
    """
    return (await explain(collector, poll, budget_s, grace_s)).outcome


async def explain(
    collector: Collector, poll: Poll, budget_s: float | None = None, grace_s: float = GRACE_S
) -> Drained:
    """The same, with the errors behind the outcome: for people who try a collector."""
    done: asyncio.Future[Drained] = asyncio.get_running_loop().create_future()

    def on_done(drained: Drained) -> None:
        if not done.done():  # else our caller has just been cancelled
            done.set_result(drained)

    under_way = Drain(collector, poll, on_done, budget_s, grace_s)
    try:
        return await done
    finally:
        under_way.stop()


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of a poll, and why. The failures' errors are of our own tree and hold no secret."""

    outcome: Outcome
    failures: Sequence[PartFailed] = ()
    #: What it asked of the network, if the collector says so.
    traffic: Traffic | None = None


class Drain:
    """One poll under way: the collector in a task of its own, and a timer. `on_done` is called once, with what became
    of it, unless it is stopped before."""

    __slots__ = (
        "_collector",
        "_done",
        "_gathered",
        "_grace_s",
        "_on_done",
        "_pid",
        "_poll",
        "_started",
        "_task",
        "_timed_out",
        "_timer",
    )

    def __init__(
        self,
        collector: Collector,
        poll: Poll,
        on_done: Callable[[Drained], None],
        budget_s: float | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._collector = collector
        self._poll = poll
        self._grace_s = grace_s
        self._gathered = yielded_readings.Gathered(poll.memory)
        self._timed_out = False
        self._done = False  # nobody waits for it any more
        self._on_done = on_done
        self._started = loop.time()
        self._pid = os.getpid()
        deadline = (
            poll.deadline if budget_s is None else min(poll.deadline, self._started + budget_s)
        )
        self._timer = loop.call_at(deadline, self._on_deadline)
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._on_task_done)

    async def _run(self) -> None:
        """The collector from its first step to its last; nothing it raises gets out of here."""
        try:
            if getattr(self._collector, "blocking", False):
                await self._take_all(
                    blocking_adapter.stream(self._collector, self._poll, MOST_ITEMS)
                )
            else:
                await self._take_all(self._collector.collect(self._poll))
        except asyncio.CancelledError:
            if not self._done:
                self._finish(
                    self._late() if self._timed_out else self._crash(asyncio.CancelledError())
                )
        except errors.DeviceError as error:
            self._finish(error)
        except BaseException as error:  # noqa: BLE001  SystemExit of a plugin must not end the worker
            self._finish(self._crash(error))
        else:
            self._finish(self._late() if self._timed_out else None)
        finally:
            if (
                os.getpid() != self._pid
            ):  # the collector forked: a copy of the worker must not go on beside it
                os._exit(1)

    async def _take_all(self, stream: Any) -> None:
        taken = 0
        try:
            async for item in stream:
                if self._done:  # it was abandoned: what it says now is nobody's
                    break
                await self._take(item)
                taken += 1
                if (
                    taken % BREATH == 0
                ):  # one that never waits would stop the loop, and with it every other poll
                    await asyncio.sleep(0)
                if taken > MOST_ITEMS:
                    raise yielded_readings.TooMany(f"more than {MOST_ITEMS} readings in one poll")
            else:
                return
        except yielded_readings.NotAReading as error:
            if isinstance(error, yielded_readings.TooMany):
                self._gathered = yielded_readings.Gathered(self._poll.memory)
            error.where = _line(stream)
            await stream.aclose()
            raise
        await stream.aclose()

    async def _take(self, item: object) -> None:
        if not isinstance(item, ReadingSet):
            self._gathered.take(item)
            return
        for _ in self._gathered.taking(item):
            await asyncio.sleep(0)

    def _finish(self, error: errors.DeviceError | None) -> None:
        if self._done:
            return
        try:
            settled = self._settle(error)
        except Exception as broken:  # noqa: BLE001  even its errors are broken: still an outcome, and in time
            text = f"collector {self._collector.name} failed, and its error cannot be read ({type(broken).__name__})"
            settled = Drained(outcome.from_error(errors.CollectorCrashed(text)))
        self._done = True
        self._timer.cancel()
        self._on_done(settled)

    def _settle(self, error: errors.DeviceError | None) -> Drained:
        failed = list(self._gathered.failed())
        if error is not None:
            failed.append(PartFailed("", error))
        try:
            readings = self._gathered.readings()
        except Exception as broken:  # noqa: BLE001  readings nobody can put together are the collector's fault
            readings, failed = None, [*failed, PartFailed("", self._crash(broken))]
        if not failed:
            return Drained(Outcome(Result.OK, readings=readings), traffic=self._gathered.traffic)
        clean = [
            PartFailed(item.part, _cleaned(item.error, self._poll.credential)) for item in failed
        ]
        return Drained(_bad(clean, readings), clean, self._gathered.traffic)

    def _on_deadline(self) -> None:
        if not self._task.done():
            self._timed_out = True
            self._task.cancel()
            self._timer = self._task.get_loop().call_later(self._grace_s, self._on_grace_over)

    def _on_grace_over(self) -> None:
        if not self._task.done():
            _abandoned.add(self._task)
            self._task.add_done_callback(_abandoned.discard)
            misbehaviour_log.ignored_cancellation(
                self._collector.name, self._task.get_loop().time() - self._started
            )
            text = f"{self._late()} and it ignored its cancellation"
            self._finish(errors.CollectorCrashed(f"collector {self._collector.name}: {text}"))

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not self._done:  # cancelled before its first step
            self._finish(self._late())

    def _late(self) -> errors.DeviceTimeout:
        took_s = self._task.get_loop().time() - self._started
        return errors.DeviceTimeout(f"no complete answer within {took_s:.1f} s")

    def _crash(self, error: BaseException) -> errors.CollectorCrashed:
        misbehaviour_log.crashed(self._collector.name, error)
        try:
            said = str(error)
        except Exception:  # noqa: BLE001  even that may be broken
            said = ""
        if isinstance(error, yielded_readings.NotAReading):
            did, where = "yielded what is no reading", error.where
        else:
            frames = traceback.extract_tb(error.__traceback__)
            did = f"raised {type(error).__name__}"
            where = _place(frames[-1].filename, frames[-1].lineno) if frames else ""
        return errors.CollectorCrashed(
            f"collector {self._collector.name} {did}", cause=f"{said}{where}".strip()
        )

    def stop(self) -> None:
        """Nobody waits for it any more: leave nothing running that can be stopped."""
        self._timer.cancel()
        self._done = True
        if not self._task.done() and self._task not in _abandoned:
            self._task.cancel()


def _bad(failed: Sequence[PartFailed], readings: ReadingSet | None) -> Outcome:
    """Partial when something was read, unless that is the finding. What ended the poll counts for more than a part."""
    main = next((item.error for item in failed if not item.part), failed[0].error)
    text = "; ".join(_told(failed))
    result = Result.PARTIAL if readings and not main.is_a_finding else Result.FAILED
    return Outcome(result, main.error_code, outcome.clean(text), readings, main.retryable)


def _told(failed: Sequence[PartFailed]) -> Iterator[str]:
    """Each trouble once, behind the parts it struck."""
    parts: dict[str, list[str]] = {}
    for item in failed:
        parts.setdefault(str(item.error), []).extend([item.part] if item.part else [])
    for error, struck in parts.items():
        yield f"{', '.join(struck)}: {error}" if struck else error


def _cleaned(error: errors.DeviceError, credential: Credential | None) -> errors.DeviceError:
    """The same error as the nearest class of our own tree, without frames and without this poll's secrets."""
    kind = next(base for base in type(error).__mro__ if vars(errors).get(base.__name__) is base)
    message = (
        getattr(error, "message", "") or type(error).__name__
    )  # a careless subclass may lack all three
    texts = (message, getattr(error, "cause", ""), getattr(error, "hint", ""))
    cleaned: errors.DeviceError = kind(*(scrubbed(str(text), credential) for text in texts))
    return cleaned


def _line(stream: Any) -> str:
    """Where an async generator stands: at the yield whose item was taken last. One in a thread is further already."""
    frame = getattr(stream, "ag_frame", None)
    if frame is None or frame.f_code is blocking_adapter.stream.__code__:
        return ""
    return _place(frame.f_code.co_filename, frame.f_lineno)


def _place(filename: str, line: int | None) -> str:
    return f" ({Path(filename).name}:{line})"


def scrubbed(text: str, credential: Credential | None) -> str:
    """Plugins raise what they like: no secret of this poll may be in it."""
    secrets = credential.secrets() if credential is not None else []
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text
