"""Poll all targets of a batch side by side, each with its own deadline, and hand over results in rounds.

A round ends when everything is done, or when no more answers come for a moment: a dead device holds up nobody
else's readings, and no healthy target waits for it before it can fall due again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from poller import errors
from poller.collectors.api import Collector, Poll, needs_credential
from poller.collectors.credentials import Credential
from poller.collectors.poll_runner import PollRunner
from poller.collectors.registry import Registry
from poller.collectors.sessions import Sessions
from poller.domain.failures import error_codes, outcome
from poller.domain.failures.outcome import Outcome, Result
from poller.workers.batch.event_loop import Runtime
from poller.workers.batch.target_cache import Known
from poller.workers.guard import running_code
from poller.workers.guard.isolation import NO_WAYS, Detour, Way

#: At the latest, if anybody is done. The first ends without anybody, too: whole batches of silent devices are no reason
#: for others to wait, and lend their places as well.
FIRST_ROUND_S = 1.0
LATER_ROUNDS_S = 2.0
#: So long nobody answers, or for that share of the time since the batch began: then it is quiet.
QUIET_S = 0.04
QUIET_SHARE = 0.25
LATE_S = 0.02

Opened = Credential | errors.PollerError  # or why it does not open


class Collected(NamedTuple):
    """One target's outcome, and how long after the start of the batch it was there."""

    id: int
    outcome: Outcome
    elapsed_ms: int


class Batch:
    """The polls of one batch on the loop. Call `next_round` from the task's thread until there is none."""

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        flight: int,
        sessions: Sessions | None = None,
        ways: Mapping[str, Way] = NO_WAYS,
    ) -> None:
        self._runtime = runtime
        self._registry = registry
        self._sessions = sessions
        self._ways = ways  # of the few collectors that are not simply drained
        self._flight = flight  # its number in the black box
        self._began = 0.0
        self._under_way: dict[int, PollRunner | Detour] = {}
        self._collected: list[Collected] = []
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle
        self._is_first, self._patience_s = True, FIRST_ROUND_S
        self._ends = 0.0  # its patience for this round

    def start(self, known: Sequence[Known], secrets: Mapping[int, Opened]) -> None:
        self._runtime.run(self._start(known, secrets))

    def next_round(self) -> list[Collected] | None:
        """Who is done since the last one. The first may be empty: all of them take their time."""
        return self._runtime.run(self._next_round())

    def cancel(self) -> None:
        """The worker must stop: whatever still runs ends now, with no outcome."""
        self._runtime.loop.call_soon_threadsafe(self._stop)

    async def _start(self, known: Sequence[Known], secrets: Mapping[int, Opened]) -> None:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        for item in known:
            self._begin(item, secrets, loop)

    def _begin(
        self, known: Known, secrets: Mapping[int, Opened], loop: asyncio.AbstractEventLoop
    ) -> None:
        target = known.target
        opened = secrets.get(target.credential_id) if target.credential_id is not None else None
        refused = self._refusal(known, opened)
        if refused is not None:
            self._arrived(target.id, refused)
            return
        collector = self._registry.get(target.collector)
        credential = (
            opened if isinstance(opened, collector.credentials) else None
        )  # no other is any of its business
        asked = (target.id, target.device, target.address, known.options, credential)
        poll = Poll(*asked, loop.time() + target.timeout_ms / 1000, known.memory, self._sessions)
        if self._ways and (way := self._ways.get(target.collector)) is not None:
            self._under_way[target.id] = Detour(
                way(target, poll), lambda done: self._detoured(target.id, done)
            )
            return
        running_code.mark(target.id, self._flight)
        self._under_way[target.id] = PollRunner(
            collector, poll, lambda done: self._arrived(target.id, done.outcome)
        )

    def _refusal(self, known: Known, opened: Opened | None) -> Outcome | None:
        """Why nothing is sent: what is wrong with the target, or else with its credential."""
        if known.problem is not None:
            return Outcome(Result.REFUSED, _code(known.problem), outcome.clean(str(known.problem)))
        collector = self._registry.get(known.target.collector)
        try:
            if isinstance(opened, collector.credentials) or not needs_credential(
                collector, known.options
            ):
                return None
        except errors.CollectorCrashed as error:
            return outcome.from_error(error)
        text = str(opened) if isinstance(opened, errors.PollerError) else _lacks(collector)
        return Outcome(Result.REFUSED, error_codes.CREDENTIAL_UNUSABLE, outcome.clean(text))

    def _arrived(self, target_id: int, result: Outcome) -> None:
        self._under_way.pop(target_id, None)
        elapsed_s = self._runtime.loop.time() - self._began
        self._collected.append(Collected(target_id, result, round(elapsed_s * 1000)))
        if not self._under_way:
            self._wake()

    def _detoured(self, target_id: int, result: Outcome | None) -> None:
        """Without a result nothing is known of it: it is handed back with the batch."""
        if result is not None:
            self._arrived(target_id, result)
            return
        del self._under_way[target_id]
        if not self._under_way:
            self._wake()

    async def _next_round(self) -> list[Collected] | None:
        if self._under_way:
            await self._wait()
        done, self._collected = self._collected, []
        self._is_first, self._patience_s = False, LATER_ROUNDS_S
        return done if done or self._under_way else None

    async def _wait(self) -> None:
        """Until all are done, or enough of them: see `_look`."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        self._ends = loop.time() + self._patience_s
        self._look(loop, -1, loop.time())
        try:
            await self._waiter
        finally:
            self._timer.cancel()
            self._waiter = None

    def _look(self, loop: asyncio.AbstractEventLoop, seen: int, planned: float) -> None:
        """Is it quiet? Then who is done goes, and who is silent is waited for without them.

        A look that comes late finds a loop that is busy: the answers may be there, and nobody has read them.
        """
        now, here = loop.time(), len(self._collected)
        quiet = here == seen and now - planned < LATE_S
        over = now >= self._ends
        if (here and (quiet or over)) or (self._is_first and quiet and over):
            self._wake()
            return
        pause_s = max(QUIET_S, QUIET_SHARE * (now - self._began))
        if here and now + pause_s > self._ends:
            pause_s = max(0.0, self._ends - now)
        self._timer = loop.call_later(pause_s, self._look, loop, here, now + pause_s)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop(self) -> None:
        for under_way in self._under_way.values():
            under_way.stop()
        self._under_way.clear()
        self._wake()


def _lacks(collector: Collector) -> str:
    kinds = " or ".join(model.kind for model in collector.credentials)
    return f"{collector.name} needs a credential of kind {kinds}; neither the target nor its device has one"


def _code(problem: errors.PollerError) -> str:
    if isinstance(problem, errors.CollectorMissing):
        return error_codes.COLLECTOR_MISSING
    return error_codes.OPTIONS_INVALID
