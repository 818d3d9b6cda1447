"""Reads scalars and subtrees through a link: retries within a deadline, loop guard, sizes.

The walker decides how much to request and how often; which objects to read is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from poller import errors
from poller.collectors.memory.answer_budget import STEP_BYTES, Hold
from poller.collectors.memory.error_frames import drop_frames
from poller.collectors.snmp import oid
from poller.collectors.snmp.engines.engine_protocol import (
    AUTHORIZATION_ERROR,
    NO_ACCESS,
    NO_SUCH_NAME,
    TOO_BIG,
    ErrorStatus,
    Garbled,
    Link,
    NoReply,
    Page,
    PreparedRequest,
    Row,
)
from poller.collectors.snmp.read.change_detection import UPTIME
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.wire.value_types import Value

T = TypeVar("T")
OnRows = Callable[[Sequence[Row]], object]

#: Each attempt waits this many times longer than the one before: haste does not help a slow agent.
BACKOFF = 1.5
#: Maximum rows of one subtree. Agents may invent rows for ever; no device has this many.
MAX_ROWS = 200_000
#: Memory of a response, relative to its datagram: a row of 25 bytes takes two hundred.
_MEMORY_FACTOR = 8
#: Bytes of datagrams after which the budget of the worker is told.
_REPORTED_BYTES = STEP_BYTES // _MEMORY_FACTOR
#: Time before the poll's deadline that is left for yielding the readings.
YIELD_S = 0.02
_DENIED = "this user or community may not read it, or not at this security level"


class RetryPolicy(NamedTuple):
    """How long and how often to wait for a response. `deadline` is on the loop's clock."""

    timeout_s: float
    retries: int
    deadline: float

    def wait_s(self, attempt: int, now: float) -> float:
        """Time limit of attempt number `attempt` (from 0); 0 or less after the deadline."""
        timeout_s = self.timeout_s * BACKOFF**attempt
        left_s = self.deadline - YIELD_S - now
        return min(timeout_s, left_s)


@dataclass(slots=True)
class Walked:
    """Rows of a subtree. With an error, the reliable rows that came before it."""

    rows: list[Row] = field(default_factory=list)
    error: errors.DeviceError | None = None


class Walker:
    """Reads one agent through one link. `agent` is its name in error texts.

    `allow_disorder`: OIDs of a walk may decrease, and only a repeated OID counts as a loop.
    `hold` takes the size of large answers.
    """

    def __init__(
        self,
        link: Link,
        policy: RetryPolicy,
        sizes: RequestSizes,
        agent: str,
        allow_disorder: bool = False,
        hold: Hold | None = None,
    ) -> None:
        self._link = link
        self._hold = hold
        self._reported = link.received  # bytes that the budget knows of
        self._policy = policy
        self.sizes = sizes
        self._agent = agent
        self._allow_disorder = allow_disorder
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        #: The agent has responded to a request of this poll.
        self.answered = False
        #: The agent has responded to the handshake of this poll.
        self._discovered = False
        #: Instant of the last response, by the loop's clock.
        self.answered_mono = 0.0
        self.sent = 0
        self.retried = 0
        #: Attempts of the first request that a replay has used.
        self._spent = 0

    async def handshake(self) -> None:
        """Prepare the link for requests. Raises DeviceErrors."""
        await self._link.handshake(self.retry)
        self._discovered = self.answered
        self.answered = False  # agents respond to a handshake and then ignore a wrong user

    @property
    def replays(self) -> bool:
        """Whether the link can send prepared requests."""
        return self._link.replays

    async def replay(
        self, requests: Sequence[PreparedRequest], window: int
    ) -> Sequence[list[Value]] | None:
        """The values of each response; None as soon as one is missing or not as expected.

        After the first response up to `window` requests are on their way at a time. Each is sent
        once. Raises the DeviceErrors of an agent that has not answered yet.
        """
        answers: dict[int, list[Value]] = {}
        try:
            await self._replay(requests, window, answers)
        except NoReply:
            self._spent = 0 if self.answered else 1
        except errors.DeviceError:
            if not self.answered:
                raise
        if len(answers) < len(requests):
            return None
        return [answers[at] for at in range(len(requests))]

    async def _replay(
        self, requests: Sequence[PreparedRequest], window: int, answers: dict[int, list[Value]]
    ) -> None:
        """Fill `answers`, by the place of the request, until one is not as expected."""
        link = self._link
        pending: dict[int, PreparedRequest] = {}
        places: dict[int, int] = {}
        next_at = 0
        while len(answers) < len(requests):
            most = window if self.answered else 1
            while next_at < len(requests) and len(pending) < most:
                request = requests[next_at]
                request_id = link.send_prepared(request)
                pending[request_id] = request
                places[request_id] = next_at
                next_at += 1
                self.sent += 1
            wait_s = self._policy.wait_s(0, self._now())
            if wait_s <= 0:
                return
            answered_id, values = await link.receive_prepared(pending, wait_s)
            self.answered = True
            self.answered_mono = self._now()
            if values is None:
                return
            del pending[answered_id]
            answers[places[answered_id]] = values

    async def responds(self) -> bool:
        """After a timeout: whether the agent still answers anything. One attempt, of sysUpTime."""
        if self.answered:
            return True
        try:
            await self.retry(self._get_uptime, tries=1)
        except errors.DeviceError:
            return self.answered  # an error status is a response
        return True

    async def get(self, oids: Sequence[str], present: bool = False) -> list[Row]:
        """Values of scalars, several to a request. Raises DeviceErrors.

        `present`: all of them were there before. Otherwise SNMP v1 needs one request per OID: it
        fails a whole GET for one absent OID.
        """
        rows: list[Row] = []
        max_oids = self.sizes.limit if present else self._link.max_get_oids
        at = 0
        while at < len(oids):
            count = min(max_oids, self.sizes.oids.now)
            got, requested = await self._get(oids[at : at + count], present)
            rows += got
            at += requested
        return rows

    async def _get(self, oids: Sequence[str], present: bool = False) -> tuple[Sequence[Row], int]:
        """Values of as many of the first OIDs as fit a response, and the number of these OIDs."""
        # Present OIDs that fall silent cause a full read: leave time for it.
        limited = present and self.answered
        tries = min(2, self._policy.retries + 1) if limited else 0

        async def exchange(attempt: int, wait_s: float) -> tuple[Sequence[Row], int]:
            if attempt and not self.answered and self._is_last_chance(attempt, oids):
                await self._get_uptime(attempt, wait_s)
                self.answered = True
                raise NoReply("no answer")
            some = oids[: max(1, len(oids) >> attempt)] if self.answered else oids
            return await self._link.get(some, wait_s), len(some)

        try:
            rows, requested = await self.retry(exchange, tries)
        except Garbled:
            if len(oids) == 1:
                raise
        except ErrorStatus as error:
            if error.status == NO_SUCH_NAME:
                if len(oids) == 1:
                    return (), 1
                return await self._get(oids[: len(oids) // 2], present)
            if error.status != TOO_BIG or len(oids) == 1:
                raise self._refused(error, oids[0]) from None
        else:
            if requested < len(oids):
                self.sizes.oids.record_timeout(len(oids), oids[0])
            self.sizes.oids.record_response(requested)
            return rows, requested
        self.sizes.oids.record_too_big(len(oids))
        return await self._get(oids[: len(oids) // 2], present)

    def _is_last_chance(self, attempt: int, oids: Sequence[str]) -> bool:
        """Whether the last attempt should ask for sysUpTime alone: only the rest may be silent."""
        if attempt < self._policy.retries or len(oids) == 1:
            return False
        return UPTIME in oids

    async def _get_uptime(self, _: int, wait_s: float) -> object:
        """Request sysUpTime, which every agent has."""
        return await self._link.get((UPTIME,), wait_s)

    async def walk_range(self, cursor: str, root: str, count: int) -> list[Row]:
        """Up to `count` rows after `cursor` within `root`. Raises DeviceErrors."""
        rows: list[Row] = []
        try:
            while len(rows) < count:
                request = min(count - len(rows), self.sizes.rows.now)
                page = await self._page(cursor, root, request)
                rows += page.rows
                if page.ended or not page.rows:
                    break
                cursor = rows[-1][0]
        except ErrorStatus as error:
            raise self._refused(error, cursor) from None
        return rows

    async def next_oids(self, oids: Sequence[str]) -> Sequence[str]:
        """The OIDs that follow the first of these, as many as fit. Raises DeviceErrors."""

        async def exchange(_: int, wait_s: float) -> Sequence[str]:
            return await self._link.next_oids(oids, wait_s)

        try:
            return await self.retry(exchange, min(2, self._policy.retries + 1))
        except ErrorStatus as error:
            if error.status not in (NO_SUCH_NAME, TOO_BIG):
                raise
        return ("",) if len(oids) == 1 else await self.next_oids(oids[: len(oids) // 2])

    async def walk(self, root: str, on_rows: OnRows | None = None) -> Walked:
        """A subtree, or the scalar of exactly that OID. Returns device errors, does not raise them.

        `on_rows` receives the rows of each response as it arrives.
        """
        walked = Walked()
        try:
            await self._walk_pages(root, walked.rows, on_rows)
            if not walked.rows:
                rows, _ = await self._get((root,))
                walked.rows += rows
                if on_rows:
                    on_rows(walked.rows)
            self.sizes.record_walk(root, len(walked.rows))
        except ErrorStatus as error:
            walked.error = self._refused(error, walked.rows[-1][0] if walked.rows else root)
        except _Loop as error:
            walked.error = error
        except errors.DeviceError as error:
            # A table cut off anywhere would be a new shape every time.
            walked = Walked(error=drop_frames(error))
        return walked

    async def _walk_pages(self, root: str, rows: list[Row], on_rows: OnRows | None) -> None:
        """Walk a subtree into `rows`. Raises DeviceErrors."""
        cursor = root
        last = oid.Oid()
        cursors: set[str] = set()
        while True:
            request = self.sizes.rows_to_request(root, len(rows))
            page = await self._page(cursor, root, request)
            rows += page.rows
            if on_rows:
                on_rows(page.rows)
            if page.ended:
                return
            self._report_memory()

            cursor = rows[-1][0]
            # All rows share the root, so only the rest is compared. The root itself has no rest.
            here = oid.parse(cursor[len(root) + 1 :]) if len(cursor) > len(root) else last
            if here <= last and (not self._allow_disorder or cursor in cursors):
                raise _Loop(
                    f"the agent repeats itself: after {root}.{oid.text(last)} it answered {cursor}"
                )
            if len(rows) > MAX_ROWS:
                raise errors.DeviceProtocolError(f"more than {MAX_ROWS} rows under {root}")
            last = here
            cursors.add(cursor)

    def _report_memory(self) -> None:
        """Tell the budget of the worker about a large answer. Raises AnswerTooLarge."""
        more = self._link.received - self._reported
        if more > _REPORTED_BYTES and self._hold is not None:
            self._reported += more
            self._hold(more * _MEMORY_FACTOR)

    async def _page(self, cursor: str, root: str, count: int) -> Page:
        """One response of a walk; requests less after a timeout, tooBig or garbage."""
        sizes = self.sizes
        while True:

            async def exchange(attempt: int, wait_s: float, count: int = count) -> Page:
                # A timeout within a poll may be a response too big for the path: request less.
                requested = max(1, count >> attempt) if self.answered else count
                page = await self._link.page(cursor, root, requested, wait_s)
                received = len(page.rows)
                if requested < count:
                    sizes.rows.record_timeout(count, cursor)
                elif received < requested and not page.ended:
                    sizes.response_capacity = max(sizes.response_capacity, received)
                sizes.rows.record_response(requested if page.ended else received)
                return page

            try:
                return await self.retry(exchange)
            except Garbled:
                if count == 1:
                    raise
            except ErrorStatus as error:
                if error.status == NO_SUCH_NAME:  # the end of the agent's view in SNMP v1
                    return Page((), ended=True)
                if error.status != TOO_BIG or count == 1:
                    raise
            sizes.rows.record_too_big(count)
            count = max(1, count // 2)

    async def retry(self, exchange: Callable[[int, float], Awaitable[T]], tries: int = 0) -> T:
        """Repeat one request until it is answered: at most `tries` times (default 1 + retries)."""
        tries = tries or self._policy.retries + 1
        first = self._spent
        self._spent = 0
        for attempt in range(first, tries):
            wait_s = self._policy.wait_s(attempt, self._now())
            if wait_s <= 0:
                raise self.timeout_error(attempt)
            self.sent += 1
            self.retried += attempt > 0
            try:
                response = await exchange(attempt, wait_s)
            except NoReply:
                continue
            except (ErrorStatus, Garbled):
                self.answered = True
                raise
            self.answered = True
            self.answered_mono = self._now()
            return response
        raise self.timeout_error(tries)

    def timeout_error(self, tries: int | None = None) -> errors.DeviceTimeout:
        """The error after this many unanswered attempts (default 1 + retries)."""
        if tries is None:
            tries = self._policy.retries + 1
        count = "1 try" if tries == 1 else f"{tries} tries"
        took_s = self._now() - self._started
        if self.answered:
            return errors.DeviceTimeout(
                f"{self._agent} stopped answering ({count}, {took_s:.1f} s into the poll)",
                cause="an overloaded agent, lost packets, or answers too big for the way back",
            )
        if self._discovered:
            return errors.DeviceTimeout(
                f"{self._agent} answered the SNMPv3 discovery and none of our requests"
                f" ({count} in {took_s:.1f} s)",
                cause=self._link.silence.cause,
                hint=self._link.silence.hint,
            )
        return errors.DeviceTimeout(
            f"no answer from {self._agent} ({count} in {took_s:.1f} s)",
            cause="wrong credential, an access list without this host, or no agent there",
        )

    def _refused(self, error: ErrorStatus, name: str) -> errors.DeviceError:
        """The device error for an error status at an OID."""
        message = f"{error.message} at {name}"
        if error.status in (NO_ACCESS, AUTHORIZATION_ERROR):
            return errors.DeviceAuthFailed(message, cause=_DENIED)
        return errors.DeviceProtocolError(message)


class _Loop(errors.DeviceProtocolError):
    """The OIDs of a walk do not increase."""
