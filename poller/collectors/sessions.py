"""Connections that outlive a poll: one for each device and credential, shared by its targets, one poll at a time.

A session is kept only if the poll on it ended well; after anything else it is closed. All of this happens on the
one loop of a worker process, and costs nothing to collectors that keep no sessions.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import random
import resource
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from poller import errors
from poller.collectors.api import Credential, KeepsSessions, Poll, SessionLost
from poller.domain.scheduling.session_limits import Limits, Rules

#: A poll stops to wait this long before its deadline, so that it can still say what it waited for.
HAND_OVER_S = 0.05
#: A session whose poll should have ended so long ago is taken away from it: its collector ignores its cancellation.
OVERTIME_S = 1.0
#: How long the end of a session may take before nobody waits for it any more.
CLOSING_S = 1.0
SWEEP_S = 5.0
#: A wait that is worth mentioning when the rest of the time was too short.
TOLD_S = 0.1
#: Sessions made in one moment are not all replaced in one moment.
AGE_SPREAD = 0.1

T = TypeVar("T")
Key = tuple[Hashable, ...]
_SALT = os.urandom(16)


@dataclass(slots=True, eq=False)
class _Host:
    """One address, as one collector sees it."""

    name: str
    keeper: KeepsSessions[Any]
    limits: Limits
    kept: OrderedDict[Key, _Kept] = field(default_factory=OrderedDict)  # the longest unused first
    waiting: deque[tuple[Key, asyncio.Future[_Kept]]] = field(default_factory=deque)
    closing: set[asyncio.Task[None]] = field(default_factory=set)
    next_open: float = 0.0


@dataclass(slots=True, eq=False)
class _Kept:
    """One session: in use, or idle since `idle_since`."""

    key: Key
    host: _Host
    user_ends: float = math.inf  # deadline of the poll that uses it
    session: Any = None  # none while it is being opened
    dies_at: float = 0.0
    idle_since: float | None = None
    gone: bool = False


class Sessions:
    """The sessions of one worker process. `opened` counts logins."""

    def __init__(
        self, rules: Rules | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self.opened = 0
        self._rules = rules or Rules()
        self._most = min(
            self._rules.most, max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        )
        self._chance = chance
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()  # the longest unused first
        self._hosts: dict[tuple[str, str], _Host] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._kept)

    async def use(
        self, keeper: KeepsSessions[Any], poll: Poll, work: Callable[[Any], Awaitable[T]]
    ) -> T:
        """Run `work` with a session of this poll's device. See `Poll.session`."""
        began = asyncio.get_running_loop().time()
        kept = await self._take(keeper, poll)
        fresh, waited_s = kept.session is None, asyncio.get_running_loop().time() - began
        try:
            return await self._work(kept, poll, work)
        except SessionLost:  # a device may end an idle session: no error, if nothing was read yet
            if fresh:
                raise
        except errors.DeviceTimeout as error:
            if waited_s < TOLD_S:
                raise
            cause = f"{error.cause}; {waited_s:.1f} s of it were spent waiting for its turn".removeprefix(
                "; "
            )
            raise errors.DeviceTimeout(error.message, cause, error.hint) from None
        return await self._work(await self._take(keeper, poll), poll, work)

    async def close(self) -> None:
        """End them all; a poll that still runs loses its own."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for kept in list(self._kept.values()):
            self._end(kept, politely=kept.idle_since is not None)
        closing = {task for host in self._hosts.values() for task in host.closing}
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_S)

    async def _work(self, kept: _Kept, poll: Poll, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            if kept.session is None:
                await self._open(kept, poll)
            done = await work(kept.session)
        except BaseException:  # also a cancellation: an unread answer may be on its way
            self._drop(kept)
            raise
        self._give_back(kept)
        return done

    async def _open(self, kept: _Kept, poll: Poll) -> None:
        host, loop = kept.host, asyncio.get_running_loop()
        if (
            host.closing
        ):  # until they are gone they count; but for one that never goes nobody waits twice
            _, left = await asyncio.wait(set(host.closing), timeout=CLOSING_S)
            host.closing -= left
        began = loop.time()
        while host.next_open > loop.time():
            if host.next_open >= poll.deadline - HAND_OVER_S:
                raise _busy(host, began, f"a new connection only every {host.limits.pace_s:g} s")
            await asyncio.sleep(host.next_open - loop.time())
        host.next_open = loop.time() + host.limits.pace_s
        self.opened += 1
        kept.session = await host.keeper.open_session(poll)
        kept.dies_at = loop.time() + host.limits.age_s * (1 - AGE_SPREAD * self._chance())

    async def _take(self, keeper: KeepsSessions[Any], poll: Poll) -> _Kept:
        """Its turn on a session, which may have to be opened first. Raises DeviceBusy when there was none in time."""
        key = (
            keeper.name,
            poll.device,
            poll.address,
            keeper.session_key(poll),
            _mark(poll.credential),
        )
        host = self._hosts.get((keeper.name, poll.address))
        if host is None:
            host = _Host(poll.address, keeper, self._rules.of(keeper.name))
            self._hosts[keeper.name, poll.address] = host
        kept = None if self._queued(key, host) else self._offer(key, host)
        if kept is None:
            kept = await self._wait(key, host, poll)
        kept.user_ends = poll.deadline
        return kept

    @staticmethod
    def _queued(key: Key, host: _Host) -> bool:
        """Do others wait, whom we would overtake? Those for another session do not count if ours is there."""
        return any(key == other or key not in host.kept for other, _ in host.waiting)

    async def _wait(self, key: Key, host: _Host, poll: Poll) -> _Kept:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[_Kept] = loop.create_future()
        entry, began = (key, turn), loop.time()
        host.waiting.append(entry)
        try:
            async with asyncio.timeout_at(poll.deadline - HAND_OVER_S):
                return await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():  # it came in the same moment
                self._give_back(turn.result())
            else:
                host.waiting.remove(entry)
            if isinstance(error, TimeoutError):
                most = f"at most {host.limits.per_host} connections there, and one poll at a time on each"
                raise _busy(host, began, most) from None
            raise

    def _offer(self, key: Key, host: _Host) -> _Kept | None:
        """The session of this key if it is free, or the right to open it; None if neither is to be had now."""
        now = asyncio.get_running_loop().time()
        kept = host.kept.get(key)
        if kept is not None and self._is_over(kept, now):
            self._end(kept, politely=kept.idle_since is not None)
            kept = None
        if kept is not None:
            if kept.idle_since is None:
                return None
            kept.idle_since, kept.user_ends = None, math.inf
            return kept
        if len(host.kept) >= host.limits.per_host and not self._end_idle(host.kept):
            return None
        if len(self._kept) >= self._most:
            self._end_idle(self._kept)
        kept = _Kept(key, host)
        self._kept[key] = host.kept[key] = kept
        return kept

    def _is_over(self, kept: _Kept, now: float) -> bool:
        if kept.idle_since is None:
            return now > kept.user_ends + OVERTIME_S
        return now > kept.dies_at or now - kept.idle_since > kept.host.limits.idle_s

    def _end_idle(self, among: OrderedDict[Key, _Kept]) -> bool:
        """Make room: the one that was used last goes. Devices come in turns, so it is the last to be needed again;
        to end the longest unused one would be to end each shortly before its next poll. `idle_s` ends those that
        nobody needs.
        """
        idle = next(
            (kept for kept in reversed(among.values()) if kept.idle_since is not None), None
        )
        if idle is not None:
            self._end(idle, politely=True)
        return idle is not None

    def _give_back(self, kept: _Kept) -> None:
        if kept.gone:  # it was taken away
            return
        kept.idle_since = asyncio.get_running_loop().time()
        self._kept.move_to_end(kept.key)
        kept.host.kept.move_to_end(kept.key)
        if kept.session is None or self._closed:
            self._end(kept, politely=True)
        elif len(self._kept) > self._most:
            self._end_idle(self._kept)
        self._grant(kept.host)
        self._sweep_later()

    def _drop(self, kept: _Kept) -> None:
        if not kept.gone:
            self._end(kept, politely=False)
            self._grant(kept.host)
            self._sweep_later()

    def _end(self, kept: _Kept, *, politely: bool) -> None:
        kept.gone = True
        del self._kept[kept.key]
        del kept.host.kept[kept.key]
        if kept.session is not None:
            closing = asyncio.get_running_loop().create_task(_end_session(kept, politely))
            kept.host.closing.add(closing)
            closing.add_done_callback(kept.host.closing.discard)

    def _grant(self, host: _Host) -> None:
        """Who waits for the longest goes first; those whose session is in use let others pass."""
        for entry in list(host.waiting):
            key, turn = entry
            kept = None if turn.done() else self._offer(key, host)
            if kept is not None:
                host.waiting.remove(entry)
                turn.set_result(kept)

    def _sweep_later(self) -> None:
        if self._sweeper is None and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """What nobody uses any more is closed, and what is known of hosts without sessions forgotten."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        for kept in list(self._kept.values()):
            if not kept.gone and self._is_over(
                kept, now
            ):  # who waited for one may have ended another
                self._end(kept, politely=kept.idle_since is not None)
                self._grant(kept.host)
        for name, host in list(self._hosts.items()):
            if not (host.kept or host.waiting or host.closing or host.next_open > now):
                del self._hosts[name]
        if self._hosts:
            self._sweep_later()


async def _end_session(kept: _Kept, politely: bool) -> None:
    try:
        async with asyncio.timeout(CLOSING_S):
            await kept.host.keeper.close_session(kept.session, politely=politely)
    except Exception:  # noqa: BLE001, S110  a plugin's: the session is over, and nobody waits to hear how
        pass


def _mark(credential: Credential | None) -> bytes:
    """Tells versions of a credential apart without keeping one of them in memory."""
    if credential is None:
        return b""
    return hashlib.blake2b(credential.to_json().encode(), key=_SALT, digest_size=16).digest()


def _busy(host: _Host, began: float, why: str) -> errors.DeviceBusy:
    waited_s = asyncio.get_running_loop().time() - began
    return errors.DeviceBusy(
        f"waited {waited_s:.1f} s for its turn at {host.name}; nothing was sent", cause=why
    )
