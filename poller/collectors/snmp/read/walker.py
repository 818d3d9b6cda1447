"""The guard around an engine: tries again within the deadline, stops loops, shrinks requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from poller import errors
from poller.collectors.snmp import oid
from poller.collectors.snmp.engines import engine_protocol
from poller.collectors.snmp.engines.engine_protocol import (
    ErrorStatus,
    Garbled,
    Link,
    NoReply,
    Page,
    Row,
)
from poller.collectors.snmp.read.change_signals import UPTIME
from poller.collectors.snmp.read.empty_tables import Gap
from poller.collectors.snmp.read.request_size import Tuning

T = TypeVar("T")
Seen = Callable[[Sequence[Row]], object]

#: Each try waits this much longer than the one before: a slow agent is not helped by haste.
BACKOFF = 1.5
#: An agent may invent rows for ever; this many in one subtree are more than any device has.
MAX_ROWS = 200_000
#: We stop this long before the platform's deadline, so that what was read can still be handed over.
HAND_OVER_S = 0.02
_MAY_NOT = "this user or community may not read it, or not at this security level"


class Patience(NamedTuple):
    """How long to wait for an answer. `deadline` is an instant of the loop's clock."""

    timeout_s: float
    retries: int
    deadline: float

    def wait_s(self, attempt: int, now: float) -> float:
        """For the try number `attempt` (from 0); 0 or less when the time is up."""
        return min(self.timeout_s * BACKOFF**attempt, self.deadline - HAND_OVER_S - now)


@dataclass(slots=True)
class Walked:
    """What a subtree gave. With an error the rows are what came before it, where they can be relied on."""

    rows: list[Row] = field(default_factory=list)
    error: errors.DeviceError | None = None


class Leg(NamedTuple):
    """A stretch of rows that were beside each other the last time: so many after `cursor`, within `root`."""

    part: str
    root: str
    cursor: str
    rows: int
    #: Nothing follows within the root. It is asked for, so that a row that has come since is seen.
    ends: bool = False


class Walker:
    """Reads scalars and subtrees of one agent through a link."""

    def __init__(self, link: Link, patience: Patience, tuning: Tuning, agent: str) -> None:
        self._link = link
        self._patience = patience
        self._tuning = tuning
        self._agent = agent
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        self.answered = False
        #: OIDs of a walk need not increase, only never come again.
        self.allows_disorder = False
        self.sent = 0
        self.retried = 0

    async def begin(self) -> None:
        await self._link.begin(self.ask)
        self.answered = (
            False  # to an introduction everybody answers: the user may still be refused in silence
        )

    async def is_there(self) -> bool:
        """After silence: is it only what was asked for that is silent? One try, of what every agent has."""
        if not self.answered:
            try:
                await self.ask(lambda _, wait_s: self._link.get((UPTIME,), wait_s), tries=1)
            except errors.DeviceError:
                return self.answered  # an error is an answer, too
        return True

    async def get(self, oids: Sequence[str], known: bool = False) -> list[Row]:
        """Scalars, several to a request; a request that is too big is split.

        `known`: all of them were there the last time. Else a v1 agent, which refuses a whole GET for one that it lacks,
        is asked for them one by one.
        """
        rows: list[Row] = []
        most = self._tuning.limit if known else self._link.at_once
        at = 0
        while at < len(oids):
            some, asked = await self._get(oids[at : at + min(most, self._tuning.oids.now)], known)
            rows += some
            at += asked
        return rows

    async def _get(self, oids: Sequence[str], known: bool = False) -> tuple[Sequence[Row], int]:
        """Of the first OIDs as many as can be had at once, and how many those are."""
        # If those that are known fall silent, everything is read once more: keep some time for that.
        tries = min(2, self._patience.retries + 1) if known and self.answered else 0

        async def exchange(attempt: int, wait_s: float) -> tuple[Sequence[Row], int]:
            if (
                len(oids) > 1
                and not self.answered
                and 0 < attempt == self._patience.retries
                and UPTIME in oids
            ):
                await self._link.get(
                    (UPTIME,), wait_s
                )  # the last try: is it only the rest that is silent?
                self.answered = True
                raise NoReply("no answer")
            some = oids[: max(1, len(oids) >> attempt)] if self.answered else oids
            return await self._link.get(some, wait_s), len(some)

        try:
            rows, asked = await self.ask(exchange, tries)
        except Garbled:
            if len(oids) == 1:
                raise
        except ErrorStatus as error:
            if error.status == engine_protocol.NO_SUCH_NAME:
                return ((), 1) if len(oids) == 1 else await self._get(oids[: len(oids) // 2], known)
            if error.status != engine_protocol.TOO_BIG or len(oids) == 1:
                raise self._refused(error, oids[0]) from None
        else:
            if asked < len(oids):
                self._tuning.oids.silent(len(oids), oids[0])
            self._tuning.oids.arrived(asked)
            return rows, asked
        self._tuning.oids.too_many(len(oids))
        return await self._get(oids[: len(oids) // 2], known)

    async def stretch(self, leg: Leg) -> list[Row]:
        """The rows of a leg: those of the last time unless something has changed. Raises DeviceErrors."""
        rows: list[Row] = []
        cursor, wanted = leg.cursor, leg.rows + leg.ends
        try:
            while len(rows) < wanted:
                page = await self._page(
                    cursor, leg.root, min(wanted - len(rows), self._tuning.rows.now)
                )
                rows += page.rows
                if page.ended or not page.rows:
                    break
                cursor = rows[-1][0]
        except ErrorStatus as error:
            raise self._refused(error, cursor) from None
        return rows

    async def nothing_in(self, gaps: Sequence[Gap]) -> bool:
        """Has none of the gaps been filled? It is believed of an agent that does not say: all else is known by then."""
        at = 0
        try:
            while at < len(gaps) and self._tuning.looks_ahead:
                some = gaps[at : at + self._tuning.oids.now]
                names = await self._after([gap.cursor for gap in some])
                if any(gap.is_filled_by(name) for gap, name in zip(some, names, strict=False)):
                    return False
                at += len(names)
                self._tuning.looks_ahead = bool(names)
        except errors.DeviceError:
            self._tuning.looks_ahead = False
        return True

    async def _after(self, oids: Sequence[str]) -> Sequence[str]:
        """What follows the first of these, as many as can be had at once."""
        try:
            return await self.ask(
                lambda _, wait_s: self._link.after(oids, wait_s), min(2, self._patience.retries + 1)
            )
        except ErrorStatus as error:
            if error.status not in (engine_protocol.NO_SUCH_NAME, engine_protocol.TOO_BIG):
                raise
        return ("",) if len(oids) == 1 else await self._after(oids[: len(oids) // 2])

    async def walk(self, root: str, seen: Seen | None = None) -> Walked:
        """A subtree, or the scalar of exactly that OID. Device errors are returned, not raised.

        `seen` gets the rows as they come: for somebody who does not want to wait for the end.
        """
        walked = Walked()
        try:
            await self._pages(root, walked.rows, seen)
            if not walked.rows:
                walked.rows += (await self._get((root,)))[0]
                if seen:
                    seen(walked.rows)
            self._tuning.sizes[root] = len(walked.rows)
        except ErrorStatus as error:
            walked.error = self._refused(error, walked.rows[-1][0] if walked.rows else root)
        except _Loop as error:
            walked.error = error
        except errors.DeviceError as error:
            walked = Walked(
                error=error
            )  # a part of a table, cut off anywhere, would be a new shape every time
        return walked

    async def _pages(self, root: str, rows: list[Row], seen: Seen | None) -> None:
        cursor, last = root, oid.Oid()
        cursors: set[str] = set()
        while True:
            page = await self._page(cursor, root, self._tuning.want(root, len(rows)))
            rows += page.rows
            if seen:
                seen(page.rows)
            if page.ended:
                return
            cursor = rows[-1][0]
            # What comes before is the same for all. (The root itself is no row beneath it.)
            here = oid.parse(cursor[len(root) + 1 :]) if len(cursor) > len(root) else last
            if here <= last and (not self.allows_disorder or cursor in cursors):
                raise _Loop(
                    f"the agent repeats itself: after {root}.{oid.text(last)} it answered {cursor}"
                )
            if len(rows) > MAX_ROWS:
                raise errors.DeviceProtocolError(f"more than {MAX_ROWS} rows under {root}")
            last = here
            cursors.add(cursor)

    async def _page(self, cursor: str, root: str, want: int) -> Page:
        while True:

            async def exchange(attempt: int, wait_s: float) -> Page:
                # Silence in the middle may be an answer too big for the way back: ask for less.
                asked = max(1, want >> attempt) if self.answered else want  # noqa: B023  awaited at once
                page = await self._link.page(cursor, root, asked, wait_s)
                if asked < want:  # noqa: B023
                    self._tuning.rows.silent(want, cursor)  # noqa: B023
                elif len(page.rows) < asked and not page.ended:
                    self._tuning.fits = max(self._tuning.fits, len(page.rows))
                self._tuning.rows.arrived(asked if page.ended else len(page.rows))
                return page

            try:
                return await self.ask(exchange)
            except Garbled:
                if want == 1:
                    raise
            except ErrorStatus as error:
                if (
                    error.status == engine_protocol.NO_SUCH_NAME
                ):  # how SNMPv1 says "nothing after that"
                    return Page((), ended=True)
                if error.status != engine_protocol.TOO_BIG or want == 1:
                    raise
            self._tuning.rows.too_many(want)
            want = max(1, want // 2)

    async def ask(self, exchange: Callable[[int, float], Awaitable[T]], tries: int = 0) -> T:
        """One request until it is answered: at most `tries` (1 + retries) times, all within the deadline."""
        tries = tries or self._patience.retries + 1
        for attempt in range(tries):
            wait_s = self._patience.wait_s(attempt, self._now())
            if wait_s <= 0:
                raise self.silence(attempt)
            self.sent += 1
            self.retried += attempt > 0
            try:
                answer = await exchange(attempt, wait_s)
            except NoReply:
                continue
            except (ErrorStatus, Garbled):
                self.answered = True
                raise
            self.answered = True
            return answer
        raise self.silence(tries)

    def silence(self, tries: int | None = None) -> errors.DeviceTimeout:
        """What is said of it after so many tries; after all that there are if not told."""
        tries = self._patience.retries + 1 if tries is None else tries
        took_s = self._now() - self._started
        if self.answered:
            return errors.DeviceTimeout(
                f"{self._agent} stopped answering ({_times(tries)}, {took_s:.1f} s into the poll)",
                cause="an overloaded agent, lost packets, or answers too big for the way back",
            )
        return errors.DeviceTimeout(
            f"no answer from {self._agent} ({_times(tries)} in {took_s:.1f} s)",
            cause="wrong credential, an access list without this host, or no agent there",
        )

    def _refused(self, error: ErrorStatus, where: str) -> errors.DeviceError:
        kinds = {
            engine_protocol.NO_ACCESS: errors.DeviceAuthFailed,
            engine_protocol.AUTHORIZATION_ERROR: errors.DeviceAuthFailed,
        }
        kind = kinds.get(error.status, errors.DeviceProtocolError)
        return kind(f"{error.message} at {where}", cause=_MAY_NOT if error.status in kinds else "")


class _Loop(errors.DeviceProtocolError):
    """The agent's OIDs do not increase."""


def _times(tries: int) -> str:
    return "1 try" if tries == 1 else f"{tries} tries"
