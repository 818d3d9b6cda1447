"""Poll all targets of a batch side by side, each with its own deadline, and return the results in
rounds.

A round ends when every poll is done, or when no result arrives for a moment. A dead device
therefore delays neither the readings nor the next poll of a healthy one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import NamedTuple

from poller import errors
from poller.collectors.api import Collector, Poll, needs_credential
from poller.collectors.poll_runner import PollReport, PollRunner
from poller.collectors.registry import Registry
from poller.collectors.sessions import Sessions
from poller.domain.failures import error_codes, outcome
from poller.domain.failures.outcome import Outcome, Result
from poller.workers.batch.credential_cache import CredentialOrError
from poller.workers.batch.event_loop import PollLoop
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.guard import running_code
from poller.workers.guard.isolation import NO_OVERRIDES, OverriddenPoll, PollOverride

#: The first round ends after this long, even without a result: a batch of silent devices lends its
#: capacity, too.
FIRST_ROUND_S = 1.0
#: A later round ends after this long, once it has a result.
LATER_ROUND_S = 2.0
#: A round ends after this long without a new result: 40 ms, or a quarter of the batch's age if
#: longer.
QUIET_S = 0.04
QUIET_SHARE = 0.25
#: A check for quiet that runs later than this proves nothing: the loop is busy, results may be
#: unread.
LATE_CHECK_S = 0.02


class Collected(NamedTuple):
    """The outcome of one target, and when its poll started and ended (monotonic)."""

    id: int
    outcome: Outcome
    started_mono: float
    finished_mono: float

    @property
    def answered_mono(self) -> float:
        """When the last of the readings arrived, which may be long before the poll ended."""
        answered_mono = self.outcome.answered_mono
        is_sound = self.started_mono <= answered_mono <= self.finished_mono
        return answered_mono if is_sound else self.finished_mono


class Collection:
    """The polls of one batch on the loop. `rounds` is called from the task's thread."""

    def __init__(
        self,
        poll_loop: PollLoop,
        registry: Registry,
        batch_number: int,
        sessions: Sessions | None = None,
        overrides: Mapping[str, PollOverride] = NO_OVERRIDES,
    ) -> None:
        self._poll_loop = poll_loop
        self._registry = registry
        self._sessions = sessions
        self._overrides = overrides  # by collector: isolated and quarantined ones
        self._batch_number = batch_number  # in the black box
        self._started_mono = 0.0
        self._polls: dict[int, PollRunner | OverriddenPoll] = {}
        self._collected: list[Collected] = []
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle
        self._is_first_round = True
        self._round_ends_mono = 0.0

    def start(
        self,
        targets: Sequence[CachedTarget],
        credentials: Mapping[int, CredentialOrError],
        behind: Set[int] = frozenset(),
    ) -> None:
        """Start all polls. `behind`: the targets whose polls start long after their slots."""
        self._poll_loop.run(self._start(targets, credentials, behind))

    def rounds(self) -> Iterator[list[Collected]]:
        """Yield the results of each round. Only the first round may be empty."""
        while (collected := self._poll_loop.run(self._next_round())) is not None:
            yield collected

    def cancel(self) -> None:
        """End all running polls now, without an outcome."""
        self._poll_loop.loop.call_soon_threadsafe(self._stop)

    async def _start(
        self,
        targets: Sequence[CachedTarget],
        credentials: Mapping[int, CredentialOrError],
        behind: Set[int],
    ) -> None:
        loop = asyncio.get_running_loop()
        self._started_mono = loop.time()
        for cached in targets:
            credential_id = cached.target.credential_id
            credential = credentials.get(credential_id) if credential_id is not None else None
            self._start_poll(cached, credential, loop, cached.target.id in behind)

    def _start_poll(
        self,
        cached: CachedTarget,
        credential: CredentialOrError | None,
        loop: asyncio.AbstractEventLoop,
        is_behind: bool,
    ) -> None:
        target = cached.target
        refusal = self._refusal(cached, credential)
        if refusal is not None:
            self._on_outcome(target.id, refusal)
            return

        collector = self._registry.get(target.collector)
        accepted = credential if isinstance(credential, collector.credentials) else None
        poll = Poll(
            target_id=target.id,
            device=target.device,
            address=target.address,
            options=cached.options,
            credential=accepted,  # a collector sees no other kind
            deadline=loop.time() + target.timeout_ms / 1000,
            memory=cached.memory,
            sessions=self._sessions,
            is_behind=is_behind,
        )

        override = self._overrides.get(target.collector) if self._overrides else None
        if override is not None:
            on_done = partial(self._on_override_done, target.id)
            self._polls[target.id] = OverriddenPoll(override(target, poll), on_done)
            return
        running_code.mark(target.id, self._batch_number)
        self._polls[target.id] = PollRunner(collector, poll, partial(self._on_poll_done, target.id))

    def _refusal(
        self, cached: CachedTarget, credential: CredentialOrError | None
    ) -> Outcome | None:
        """Return why nothing is sent: the target's own problem, or that of its credential."""
        problem = cached.problem
        if problem is not None:
            return Outcome(Result.REFUSED, _problem_code(problem), outcome.clean(str(problem)))

        collector = self._registry.get(cached.target.collector)
        if isinstance(credential, collector.credentials):
            return None
        try:
            if not needs_credential(collector, cached.options):
                return None
        except errors.CollectorCrashed as error:
            return outcome.from_error(error)

        if isinstance(credential, errors.PollerError):
            reason = str(credential)
        else:
            reason = _missing_credential(collector)
        return Outcome(Result.REFUSED, error_codes.CREDENTIAL_UNUSABLE, outcome.clean(reason))

    def _on_poll_done(self, target_id: int, report: PollReport) -> None:
        self._on_outcome(target_id, report.outcome)

    def _on_override_done(self, target_id: int, result: Outcome | None) -> None:
        """Without a result the target stays unfinished, and is handed back with the batch."""
        if result is not None:
            self._on_outcome(target_id, result)
            return
        del self._polls[target_id]
        if not self._polls:
            self._end_round()

    def _on_outcome(self, target_id: int, result: Outcome) -> None:
        self._polls.pop(target_id, None)
        finished_mono = self._poll_loop.loop.time()
        self._collected.append(Collected(target_id, result, self._started_mono, finished_mono))
        if not self._polls:
            self._end_round()

    async def _next_round(self) -> list[Collected] | None:
        if self._polls:
            await self._wait_for_round()
        collected = self._collected
        self._collected = []
        self._is_first_round = False
        is_over = not collected and not self._polls
        return None if is_over else collected

    async def _wait_for_round(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        self._waiter = loop.create_future()
        self._round_ends_mono = now + (FIRST_ROUND_S if self._is_first_round else LATER_ROUND_S)
        self._check_quiet(loop, -1, now)
        try:
            await self._waiter
        finally:
            self._timer.cancel()
            self._waiter = None

    def _check_quiet(
        self, loop: asyncio.AbstractEventLoop, results_before: int, planned_mono: float
    ) -> None:
        """End the round if it is quiet or its time is over, else check again after a pause."""
        now = loop.time()
        results = len(self._collected)
        is_on_time = now - planned_mono < LATE_CHECK_S
        is_quiet = results == results_before and is_on_time
        is_over = now >= self._round_ends_mono
        if results and (is_quiet or is_over):
            self._end_round()
            return
        if self._is_first_round and is_quiet and is_over:
            self._end_round()
            return

        pause_s = max(QUIET_S, QUIET_SHARE * (now - self._started_mono))
        if results and now + pause_s > self._round_ends_mono:
            pause_s = max(0.0, self._round_ends_mono - now)
        self._timer = loop.call_later(pause_s, self._check_quiet, loop, results, now + pause_s)

    def _end_round(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop(self) -> None:
        for poll in self._polls.values():
            poll.stop()
        self._polls.clear()
        self._end_round()


def _missing_credential(collector: Collector) -> str:
    kinds = " or ".join(model.kind for model in collector.credentials)
    return (
        f"{collector.name} needs a credential of kind {kinds}; "
        "neither the target nor its device has one"
    )


def _problem_code(problem: errors.PollerError) -> str:
    if isinstance(problem, errors.CollectorMissing):
        return error_codes.COLLECTOR_MISSING
    return error_codes.OPTIONS_INVALID
