"""Runs one poll of one collector until it ends or its deadline passes, and reports the outcome.

This is the only module that calls `collect`. A collector may hang, swallow its cancellation, raise
anything or yield objects that are no readings: the result is an `Outcome`, and it comes in time.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from poller import errors, poll_secrets
from poller.collectors import blocking_adapter, misbehaviour_log
from poller.collectors.api import Collector, Credential, PartFailed, Poll, Traffic
from poller.collectors.memory import answer_budget
from poller.collectors.memory.error_frames import drop_frames
from poller.collectors.yielded_readings import NotAReading, TooManyReadings, YieldedReadings
from poller.domain.failures import error_codes, outcome
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import Reading, ReadingSet

#: Time a cancelled collector has for its cleanup before it is abandoned.
GRACE_S = 0.5

#: Items taken from a collector before the event loop serves other polls.
ITEMS_PER_STEP = 64

#: Memory of one item, for the budget of the worker: a reading with its labels.
ITEM_BYTES = 600

#: A poll that yields more items is a mistake, and none of its readings are used. A reading set
#: counts as one item; `yielded_readings.MAX_SERIES` limits the series in reading sets.
MAX_ITEMS = 50_000

#: The items that carry readings: the others may come long after the last answer.
_READINGS = (Reading, ReadingSet)

#: Tasks of collectors that ignored their cancellation. The set keeps a reference to each, since
#: the event loop holds only weak ones. The tasks are counted and never awaited.
_abandoned: set[asyncio.Task[None]] = set()


def abandoned() -> int:
    """Return how many polls of this process were cut off and still run."""
    return len(_abandoned)


@dataclass(frozen=True, slots=True)
class PollReport:
    """The outcome of a poll and the errors behind it. The errors contain no secrets."""

    outcome: Outcome
    failures: Sequence[PartFailed] = ()
    #: Requests sent to the network, if the collector yields them.
    traffic: Traffic | None = None


async def run_poll(
    collector: Collector, poll: Poll, budget_s: float | None = None, grace_s: float = GRACE_S
) -> Outcome:
    """Poll once, and end by `poll.deadline` + `grace_s`. Raise only the caller's own cancellation.

    With `budget_s` the poll ends that many seconds from now, if that is before `poll.deadline`.
    """
    report = await run_and_report(collector, poll, budget_s, grace_s)
    return report.outcome


async def run_and_report(
    collector: Collector, poll: Poll, budget_s: float | None = None, grace_s: float = GRACE_S
) -> PollReport:
    """Poll once like `run_poll`, and return the errors behind the outcome as well."""
    done: asyncio.Future[PollReport] = asyncio.get_running_loop().create_future()

    def on_done(report: PollReport) -> None:
        if not done.done():  # done: the caller has just been cancelled
            done.set_result(report)

    runner = PollRunner(collector, poll, on_done, budget_s, grace_s)
    try:
        return await done
    finally:
        runner.stop()


class PollRunner:
    """One running poll: a task for the collector, and a timer for the deadline.

    `on_done` is called once with the report, unless `stop` comes first.
    """

    __slots__ = (
        "_answered_mono",
        "_collector",
        "_done",
        "_grace_s",
        "_on_done",
        "_pid",
        "_poll",
        "_started",
        "_task",
        "_timed_out",
        "_timer",
        "_yielded",
    )

    def __init__(
        self,
        collector: Collector,
        poll: Poll,
        on_done: Callable[[PollReport], None],
        budget_s: float | None = None,
        grace_s: float = GRACE_S,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._collector = collector
        self._poll = poll
        self._grace_s = grace_s
        self._yielded = YieldedReadings(poll.memory)
        self._timed_out = False
        self._done = False  # reported, or stopped by the caller
        self._on_done = on_done
        self._started = loop.time()
        self._answered_mono = 0.0
        self._pid = os.getpid()

        deadline = poll.deadline
        if budget_s is not None:
            deadline = min(deadline, self._started + budget_s)
        self._timer = loop.call_at(deadline, self._on_deadline)
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._on_task_done)

    def stop(self) -> None:
        """Cancel the poll and report nothing."""
        self._timer.cancel()
        self._done = True
        if not self._task.done() and self._task not in _abandoned:
            self._task.cancel()

    async def _run(self) -> None:
        """Run the collector from its first step to its last; let none of its exceptions out."""
        poll_secrets.use(self._poll.credential)  # in this task only
        try:
            await self._take_all(self._stream())
        except asyncio.CancelledError:
            if not self._done:
                self._finish_cancelled()
        except errors.DeviceError as error:
            self._finish(error)
            drop_frames(error)
        except BaseException as error:  # noqa: BLE001  door: a plugin may raise SystemExit
            self._finish(self._crash(error))
            drop_frames(error)
        else:
            self._finish(self._timeout() if self._timed_out else None)
        finally:
            if os.getpid() != self._pid:  # the collector forked: end the copy of the worker
                os._exit(1)

    def _stream(self) -> Any:
        if getattr(self._collector, "blocking", False):
            return blocking_adapter.stream(self._collector, self._poll, MAX_ITEMS)
        return self._collector.collect(self._poll)

    async def _take_all(self, stream: Any) -> None:
        taken = 0
        try:
            async for item in stream:
                if self._done:  # abandoned: its readings have no use any more
                    break
                await self._take(item)
                taken += 1
                if taken % ITEMS_PER_STEP == 0:
                    answer_budget.shared.add(self._poll, ITEMS_PER_STEP * ITEM_BYTES)
                    # A collector that never waits would stop the loop, and every other poll.
                    await asyncio.sleep(0)
                if taken > MAX_ITEMS:
                    raise TooManyReadings(f"more than {MAX_ITEMS} readings in one poll")
            else:
                return
        except NotAReading as error:
            if isinstance(error, TooManyReadings):
                self._poll.memory.clear()  # it may hold as many series
                self._yielded = YieldedReadings(self._poll.memory)
            error.where = _current_line(stream)
            await stream.aclose()
            raise
        await stream.aclose()

    async def _take(self, item: object) -> None:
        if isinstance(item, _READINGS):
            self._answered_mono = self._task.get_loop().time()
        if not isinstance(item, ReadingSet):
            self._yielded.take(item)
            return
        for _ in self._yielded.take_set(item):
            await asyncio.sleep(0)

    def _on_deadline(self) -> None:
        if not self._task.done():
            self._timed_out = True
            self._task.cancel()
            loop = self._task.get_loop()
            self._timer = loop.call_later(self._grace_s, self._on_grace_over)

    def _on_grace_over(self) -> None:
        if self._task.done():
            return
        _abandoned.add(self._task)
        self._task.add_done_callback(_abandoned.discard)

        name = self._collector.name
        misbehaviour_log.ignored_cancellation(name, self._elapsed_s())
        text = f"collector {name}: {self._timeout()} and it ignored its cancellation"
        self._finish(errors.CollectorCrashed(text))

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        answer_budget.shared.release(self._poll)
        if not self._done:  # cancelled before its first step
            self._finish(self._timeout())

    def _finish_cancelled(self) -> None:
        if self._timed_out:
            self._finish(self._timeout())
        else:
            self._finish(self._crash(asyncio.CancelledError()))

    def _finish(self, error: errors.DeviceError | None) -> None:
        if self._done:
            return
        try:
            report = self._report(error)
        except Exception as broken:  # noqa: BLE001  door: the error object of a plugin
            text = (
                f"collector {self._collector.name} failed, "
                f"and its error cannot be read ({type(broken).__name__})"
            )
            report = PollReport(outcome.from_error(errors.CollectorCrashed(text)))
        self._done = True
        self._timer.cancel()
        if report.failures:
            self._drop_failures()
        self._on_done(report)

    def _drop_failures(self) -> None:
        """Free the answer of a failed poll: a collector may keep the error until its next poll."""
        for failure in self._yielded.failures:
            drop_frames(failure.error)
        answer_budget.shared.collect_after(self._poll)

    def _report(self, error: errors.DeviceError | None) -> PollReport:
        failures = list(self._yielded.failures)
        if error is not None:
            failures.append(PartFailed("", error))
        try:
            readings = self._yielded.readings()
        except Exception as broken:  # noqa: BLE001  door: readings made by a plugin
            readings = None
            failures.append(PartFailed("", self._crash(broken)))

        traffic = self._yielded.traffic
        answered_mono = self._answered_mono
        if traffic is not None and traffic.answered_mono:
            answered_mono = traffic.answered_mono
        if not failures:
            good = Outcome(Result.OK, readings=readings, answered_mono=answered_mono)
            return PollReport(good, traffic=traffic)
        credential = self._poll.credential
        clean = [
            PartFailed(scrub(each.part, credential), cleaned(each.error, credential))
            for each in failures
        ]
        failed = replace(_failed_outcome(clean, readings), answered_mono=answered_mono)
        return PollReport(failed, clean, traffic)

    def _elapsed_s(self) -> float:
        return self._task.get_loop().time() - self._started

    def _timeout(self) -> errors.DeviceTimeout:
        return errors.DeviceTimeout(f"no complete answer within {self._elapsed_s():.1f} s")

    def _crash(self, error: BaseException) -> errors.CollectorCrashed:
        misbehaviour_log.crashed(self._collector.name, error)
        try:
            text = str(error)
        except Exception:  # noqa: BLE001  door: __str__ of a plugin's exception
            text = ""
        if isinstance(error, NotAReading):
            action = "yielded what is no reading"
            where = error.where
        else:
            action = f"raised {type(error).__name__}"
            frames = traceback.extract_tb(error.__traceback__)
            where = _line_text(frames[-1].filename, frames[-1].lineno) if frames else ""
        cause = f"{text}{where}".strip()
        return errors.CollectorCrashed(f"collector {self._collector.name} {action}", cause=cause)


def _failed_outcome(failures: Sequence[PartFailed], readings: ReadingSet | None) -> Outcome:
    """Return a partial outcome if there are readings, unless the readings state the failure.

    The error code is that of the error which ended the poll, else of the first failed part.
    """
    main = next((each.error for each in failures if not each.part), failures[0].error)
    partial = bool(readings) and main.error_code not in error_codes.FINDINGS
    result = Result.PARTIAL if partial else Result.FAILED
    text = outcome.clean(_failure_text(failures))
    return Outcome(result, main.error_code, text, readings)


def _failure_text(failures: Sequence[PartFailed]) -> str:
    """Name each error once, after the parts it affects."""
    parts_by_error: dict[str, list[str]] = {}
    for failure in failures:
        parts = parts_by_error.setdefault(str(failure.error), [])
        if failure.part:
            parts.append(failure.part)

    texts = []
    for error, parts in parts_by_error.items():
        texts.append(f"{', '.join(parts)}: {error}" if parts else error)
    return "; ".join(texts)


def cleaned(error: errors.DeviceError, credential: Credential | None) -> errors.DeviceError:
    """Copy an error as the nearest class of `poller.errors`, without frames and secrets."""
    platform_errors = vars(errors)
    bases = type(error).__mro__
    kind = next(base for base in bases if platform_errors.get(base.__name__) is base)

    # A careless subclass may lack all three attributes.
    message = getattr(error, "message", "") or type(error).__name__
    cause = getattr(error, "cause", "")
    hint = getattr(error, "hint", "")
    cleaned: errors.DeviceError = kind(
        scrub(str(message), credential),
        scrub(str(cause), credential),
        scrub(str(hint), credential),
    )
    return cleaned


def scrub(text: str, credential: Credential | None) -> str:
    """Mask the secrets of a credential, whatever their length, in a text that a plugin wrote."""
    if credential is None:
        return text
    return poll_secrets.mask(text, credential.secrets(), "***")


def _current_line(stream: Any) -> str:
    """Return the line of the last `yield` of an async generator; "" for one in a thread."""
    frame = getattr(stream, "ag_frame", None)
    if frame is None or frame.f_code is blocking_adapter.stream.__code__:
        return ""
    return _line_text(frame.f_code.co_filename, frame.f_lineno)


def _line_text(filename: str, line: int | None) -> str:
    return f" ({Path(filename).name}:{line})"
