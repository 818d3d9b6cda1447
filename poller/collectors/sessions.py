"""Sessions that outlive a poll: one per device and credential, used by one poll at a time.

A session returns to the pool only if its poll succeeded; after any error it is closed. The pool
lives on the one event loop of a worker process. Collectors without sessions never reach it.
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
from poller.collectors.api import (
    Credential,
    KeepsSessions,
    Options,
    Poll,
    SessionLost,
    port_option,
)
from poller.domain.inventory.host_port import HostPort
from poller.domain.scheduling.session_limits import Limits, Rules

#: A poll stops waiting this long before its deadline, to report the reason in time.
REPORT_S = 0.05
#: A session is taken from a poll this long after the poll's deadline: its collector ignores the
#: cancellation.
OVERTIME_S = 1.0
#: Time for closing a session. Later the pool stops waiting for it.
CLOSING_S = 1.0
SWEEP_S = 5.0
#: A timeout error mentions the wait for a session if the wait was at least this long.
MENTIONED_WAIT_S = 0.1
#: Share of the maximum age that is randomized, so that sessions are not all replaced at once.
AGE_SPREAD = 0.1

T = TypeVar("T")
Key = tuple[Hashable, ...]
_SALT = os.urandom(16)


@dataclass(slots=True, eq=False)
class _Host:
    """One address and port, as one collector uses it: several routers may be behind one NAT."""

    name: str
    keeper: KeepsSessions[Any]
    limits: Limits
    pooled: OrderedDict[Key, _Pooled] = field(default_factory=OrderedDict)  # longest idle first
    waiting: deque[tuple[Key, asyncio.Future[_Pooled]]] = field(default_factory=deque)
    closing: set[asyncio.Task[None]] = field(default_factory=set)
    next_open: float = 0.0


@dataclass(slots=True, eq=False)
class _Pooled:
    """One session: in use, or idle since `idle_since`."""

    key: Key
    host: _Host
    in_use_until: float = math.inf  # deadline of the poll that uses it
    session: Any = None  # None until it is open
    expires_mono: float = 0.0
    idle_since: float | None = None
    removed: bool = False

    @property
    def is_idle(self) -> bool:
        return self.idle_since is not None


class Sessions:
    """The session pool of one worker process. `opened` counts logins."""

    def __init__(
        self, rules: Rules | None = None, chance: Callable[[], float] = random.random
    ) -> None:
        self.opened = 0
        self._rules = rules or Rules()

        open_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._limit = min(self._rules.per_worker, max(1, open_files // 2))

        self._chance = chance
        self._pooled: OrderedDict[Key, _Pooled] = OrderedDict()  # longest idle first
        self._hosts: dict[tuple[str, HostPort], _Host] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._pooled)

    async def use(
        self, keeper: KeepsSessions[Any], poll: Poll, work: Callable[[Any], Awaitable[T]]
    ) -> T:
        """Run `work` with a session to this poll's device. See `Poll.session`."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        pooled = await self._acquire(keeper, poll)
        is_new = pooled.session is None
        waited_s = loop.time() - started
        try:
            return await self._run(pooled, poll, work)
        except SessionLost:  # a device may end an idle session; nothing was read yet
            if is_new:
                raise
        except errors.DeviceTimeout as error:
            if waited_s < MENTIONED_WAIT_S:
                raise
            wait = f"{waited_s:.1f} s of it were spent waiting for its turn"
            cause = f"{error.cause}; {wait}" if error.cause else wait
            raise errors.DeviceTimeout(error.message, cause, error.hint) from None

        second = await self._acquire(keeper, poll)
        return await self._run(second, poll, work)

    async def close(self) -> None:
        """Close all sessions; a poll that still runs loses its session."""
        self._closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for pooled in list(self._pooled.values()):
            self._remove(pooled, politely=pooled.is_idle)
        closing = {task for host in self._hosts.values() for task in host.closing}
        if closing:
            await asyncio.wait(closing, timeout=CLOSING_S)

    async def _run(self, pooled: _Pooled, poll: Poll, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            if pooled.session is None:
                await self._open(pooled, poll)
            result = await work(pooled.session)
        except BaseException:  # cancellation too: an unread reply may be under way
            self._discard(pooled)
            raise
        self._release(pooled)
        return result

    async def _open(self, pooled: _Pooled, poll: Poll) -> None:
        host = pooled.host
        loop = asyncio.get_running_loop()
        if host.closing:  # sessions count until they are closed, but none is awaited twice
            _, unclosed = await asyncio.wait(set(host.closing), timeout=CLOSING_S)
            host.closing -= unclosed

        started = loop.time()
        while host.next_open > loop.time():
            if host.next_open >= poll.deadline - REPORT_S:
                reason = f"a new connection only every {host.limits.pace_s:g} s"
                raise _busy(host, started, reason)
            await asyncio.sleep(host.next_open - loop.time())

        host.next_open = loop.time() + host.limits.pace_s
        self.opened += 1
        pooled.session = await host.keeper.open_session(poll)
        age_s = host.limits.age_s * (1 - AGE_SPREAD * self._chance())
        pooled.expires_mono = loop.time() + age_s

    async def _acquire(self, keeper: KeepsSessions[Any], poll: Poll) -> _Pooled:
        """Return a session for this poll's use, perhaps one still to open. Raises DeviceBusy."""
        separate = keeper.session_key(poll)
        key = (keeper.name, poll.device, poll.address, separate, _digest(poll.credential))
        place = HostPort(poll.address, _port(poll.options))
        host = self._hosts.get((keeper.name, place))
        if host is None:
            host = _Host(str(place), keeper, self._rules.for_collector(keeper.name))
            self._hosts[keeper.name, place] = host

        pooled = None
        if not self._must_queue(key, host):
            pooled = self._offer(key, host)
        if pooled is None:
            pooled = await self._wait(key, host, poll)
        pooled.in_use_until = poll.deadline
        return pooled

    @staticmethod
    def _must_queue(key: Key, host: _Host) -> bool:
        """Return whether other polls wait that this poll must not overtake.

        Polls that wait for another session do not count if the session of this key exists.
        """
        return any(key == other or key not in host.pooled for other, _ in host.waiting)

    async def _wait(self, key: Key, host: _Host, poll: Poll) -> _Pooled:
        loop = asyncio.get_running_loop()
        started = loop.time()
        granted: asyncio.Future[_Pooled] = loop.create_future()
        entry = (key, granted)
        host.waiting.append(entry)
        try:
            async with asyncio.timeout_at(poll.deadline - REPORT_S):
                return await granted
        except BaseException as error:
            if granted.done() and not granted.cancelled():  # granted in the same moment
                self._release(granted.result())
            else:
                host.waiting.remove(entry)
            if isinstance(error, TimeoutError):
                count = host.limits.per_host
                reason = f"at most {count} connections there, and one poll at a time on each"
                raise _busy(host, started, reason) from None
            raise

    def _offer(self, key: Key, host: _Host) -> _Pooled | None:
        """Return the idle session of this key or a place for a new one; None if neither is free."""
        now = asyncio.get_running_loop().time()
        pooled = host.pooled.get(key)
        if pooled is not None and self._is_over(pooled, now):
            self._remove(pooled, politely=pooled.is_idle)
            pooled = None
        if pooled is not None:
            if not pooled.is_idle:
                return None
            pooled.idle_since = None
            pooled.in_use_until = math.inf
            return pooled

        if len(host.pooled) >= host.limits.per_host and not self._remove_idle(host.pooled):
            return None
        if len(self._pooled) >= self._limit:
            self._remove_idle(self._pooled)
        pooled = _Pooled(key, host)
        self._pooled[key] = host.pooled[key] = pooled
        return pooled

    def _is_over(self, pooled: _Pooled, now: float) -> bool:
        if pooled.idle_since is None:
            return now > pooled.in_use_until + OVERTIME_S
        idle_s = now - pooled.idle_since
        return now > pooled.expires_mono or idle_s > pooled.host.limits.idle_s

    def _remove_idle(self, candidates: OrderedDict[Key, _Pooled]) -> bool:
        """Close the idle session that was used last; return False if none is idle.

        Devices are polled in rotation, so the session used last is the last one needed again. The
        longest idle one is about to be used. `idle_s` closes sessions that are not needed.
        """
        for pooled in reversed(candidates.values()):
            if pooled.is_idle:
                self._remove(pooled, politely=True)
                return True
        return False

    def _release(self, pooled: _Pooled) -> None:
        """Return a session to the pool after a successful poll."""
        if pooled.removed:
            return
        pooled.idle_since = asyncio.get_running_loop().time()
        self._pooled.move_to_end(pooled.key)
        pooled.host.pooled.move_to_end(pooled.key)
        if pooled.session is None or self._closed:
            self._remove(pooled, politely=True)
        elif len(self._pooled) > self._limit:
            self._remove_idle(self._pooled)
        self._grant_waiting(pooled.host)
        self._schedule_sweep()

    def _discard(self, pooled: _Pooled) -> None:
        """Cut a session after a failed poll."""
        if not pooled.removed:
            self._remove(pooled, politely=False)
            self._grant_waiting(pooled.host)
            self._schedule_sweep()

    def _remove(self, pooled: _Pooled, *, politely: bool) -> None:
        pooled.removed = True
        del self._pooled[pooled.key]
        del pooled.host.pooled[pooled.key]
        if pooled.session is not None:
            closing = asyncio.get_running_loop().create_task(_close_session(pooled, politely))
            pooled.host.closing.add(closing)
            closing.add_done_callback(pooled.host.closing.discard)

    def _grant_waiting(self, host: _Host) -> None:
        """Serve waiting polls, longest wait first; skip those whose session is in use."""
        for entry in list(host.waiting):
            key, granted = entry
            if granted.done():
                continue
            pooled = self._offer(key, host)
            if pooled is not None:
                host.waiting.remove(entry)
                granted.set_result(pooled)

    def _schedule_sweep(self) -> None:
        if self._sweeper is None and not self._closed:
            self._sweeper = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        """Close sessions that are over, and forget hosts without sessions."""
        self._sweeper = None
        now = asyncio.get_running_loop().time()
        for pooled in list(self._pooled.values()):
            # A grant for an earlier one of the list may have removed this one.
            if not pooled.removed and self._is_over(pooled, now):
                self._remove(pooled, politely=pooled.is_idle)
                self._grant_waiting(pooled.host)
        for name, host in list(self._hosts.items()):
            if not (host.pooled or host.waiting or host.closing or host.next_open > now):
                del self._hosts[name]
        if self._hosts:
            self._schedule_sweep()


async def _close_session(pooled: _Pooled, politely: bool) -> None:
    try:
        async with asyncio.timeout(CLOSING_S):
            await pooled.host.keeper.close_session(pooled.session, politely=politely)
    except Exception:  # noqa: BLE001, S110  door: a plugin; the session is over in any case
        pass


def _port(options: Any) -> int | None:
    """Return the port that a target's options give, None for the usual one."""
    if not isinstance(options, Options):
        return None
    port = getattr(options, port_option(type(options)), None)
    return port if isinstance(port, int) else None


def _digest(credential: Credential | None) -> bytes:
    """Identify the version of a credential without holding its secrets in memory."""
    if credential is None:
        return b""
    return hashlib.blake2b(credential.to_json().encode(), key=_SALT, digest_size=16).digest()


def _busy(host: _Host, started: float, reason: str) -> errors.DeviceBusy:
    waited_s = asyncio.get_running_loop().time() - started
    text = f"waited {waited_s:.1f} s for its turn at {host.name}; nothing was sent"
    return errors.DeviceBusy(text, cause=reason)
