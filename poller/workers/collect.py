"""Poll all targets of a batch side by side, each with its own deadline, and hand over results in rounds.

A round ends when everything is done or after a moment, whichever is first: a dead device holds up
nobody else's readings, and no healthy target waits for it before it can fall due again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poller import errors
from poller.collectors.api import Collector, Poll
from poller.collectors.credentials import Credential
from poller.collectors.drain import drain
from poller.collectors.registry import Registry
from poller.collectors.sessions import Sessions
from poller.domain import error_codes, outcome
from poller.domain.outcome import Outcome, Result
from poller.workers import steps
from poller.workers.runtime import Runtime
from poller.workers.targets import Known

FIRST_ROUND_S = 1.0
LATER_ROUNDS_S = 2.0


@dataclass(frozen=True, slots=True)
class Collected:
    """One target's outcome, and how long after the start of the batch it was there."""

    id: int
    outcome: Outcome
    elapsed_ms: int


class Batch:
    """The polls of one batch on the loop. Call `next_round` from the task's thread until it is empty."""

    def __init__(self, runtime: Runtime, registry: Registry, flight: int, sessions: Sessions | None = None) -> None:
        self._runtime = runtime
        self._flight = flight  # its number in the black box
        self._registry = registry
        self._sessions = sessions
        self._pending: set[asyncio.Task[Collected]] = set()
        self._rounds = 0

    def start(self, known: Sequence[Known], secrets: Mapping[int, Credential | errors.PollerError]) -> None:
        self._runtime.run(self._start(known, secrets))

    def next_round(self) -> list[Collected]:
        return self._runtime.run(self._next_round())

    def cancel(self) -> None:
        """The worker must stop: whatever still runs ends now, with no outcome."""
        self._runtime.loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._pending])

    async def _start(self, known: Sequence[Known], secrets: Mapping[int, Credential | errors.PollerError]) -> None:
        began = asyncio.get_running_loop().time()
        self._pending = {asyncio.create_task(self._poll(item, secrets, began)) for item in known}

    async def _next_round(self) -> list[Collected]:
        if not self._pending:
            return []
        patience = LATER_ROUNDS_S if self._rounds else FIRST_ROUND_S
        self._rounds += 1
        done, self._pending = await asyncio.wait(self._pending, timeout=patience)
        if not done:  # nothing yet: wait for whoever comes first
            done, self._pending = await asyncio.wait(self._pending, return_when=asyncio.FIRST_COMPLETED)
        return [task.result() for task in done if not task.cancelled()]

    async def _poll(
        self, known: Known, secrets: Mapping[int, Credential | errors.PollerError], began: float
    ) -> Collected:
        steps.mark(known.target.id, self._flight)
        loop = asyncio.get_running_loop()
        result = await self._outcome(known, secrets, loop)
        return Collected(known.target.id, result, round((loop.time() - began) * 1000))

    async def _outcome(
        self,
        known: Known,
        secrets: Mapping[int, Credential | errors.PollerError],
        loop: asyncio.AbstractEventLoop,
    ) -> Outcome:
        target = known.target
        secret = secrets.get(target.credential_id) if target.credential_id is not None else None
        problem = known.problem or (secret if isinstance(secret, errors.PollerError) else None)
        if problem is not None:
            return Outcome(Result.REFUSED, _why_refused(known.problem), outcome.clean(str(problem)))
        collector = self._registry.get(target.collector)
        credential = secret if isinstance(secret, Credential) else None
        if collector.credentials and not isinstance(credential, collector.credentials):
            return Outcome(Result.REFUSED, error_codes.CREDENTIAL_UNUSABLE, _lacks(collector))
        budget_s = target.timeout_ms / 1000
        poll = Poll(
            target.id,
            target.device,
            target.address,
            known.options,
            credential,
            loop.time() + budget_s,
            known.memory,
            self._sessions,
        )
        return await drain(collector, poll, budget_s)


def _lacks(collector: Collector) -> str:
    kinds = " or ".join(model.kind for model in collector.credentials)
    return f"{collector.name} needs a credential of kind {kinds}; neither the target nor its device has one"


def _why_refused(problem: errors.PollerError | None) -> str:
    """Why nothing is sent: what is wrong with the target, or else with its credential."""
    if problem is None:
        return error_codes.CREDENTIAL_UNUSABLE
    missing = isinstance(problem, errors.CollectorMissing)
    return error_codes.COLLECTOR_MISSING if missing else error_codes.OPTIONS_INVALID
