"""Slows down the guessing of passwords: failed log-ins per address and per user.

The counters are in Redis, so that all web processes share them. While Redis is away each process
counts for itself.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from poller import errors
from poller.domain.access import login_limits
from poller.domain.access.login_limits import OF_ADDRESS, OF_USER, Counted, Limit
from poller.state.cluster import login_attempts

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Subjects that one process remembers while Redis is away; the oldest goes first.
MOST_REMEMBERED = 10_000


class LoginThrottle:
    """Counts failed log-ins. Thread-safe."""

    def __init__(self, services: Services, clock: Callable[[], float] = time.monotonic) -> None:
        self._services = services
        self._own = _OwnCounters(clock)

    def begin(self, address: str, user: str) -> Attempt:
        """Count an attempt before the password is checked. Raises TooManyRequests."""
        limits = {
            _subject("address", login_limits.counted_address(address)): OF_ADDRESS,
            _subject("user", user): OF_USER,
        }
        of_address, of_user = [self._count(*each) for each in limits.items()]
        wait_s = max(of_address.wait_s, of_user.wait_s)
        if wait_s:
            error = errors.TooManyRequests(
                f"too many log-ins failed; the next one is possible in {wait_s} s",
                hint="wait, then try again",
            )
            error.retry_after_s = wait_s
            raise error
        return Attempt(self, limits, of_address, of_user)

    def _count(self, subject: str, limit: Limit) -> Counted:
        services = self._services
        try:
            return login_attempts.count(services.redis, services.keys, subject, limit)
        except errors.StoreError:
            return self._own.count(subject, limit)

    def forget(self, subject: str, limit: Limit) -> None:
        """Take one counted attempt back: it did not fail."""
        services = self._services
        self._own.forget(subject)
        try:
            login_attempts.take_back(services.redis, services.keys, subject, limit)
        except errors.StoreError:
            return  # the counter ends by itself


class Attempt:
    """One log-in that was counted in advance."""

    def __init__(
        self,
        throttle: LoginThrottle,
        limits: Mapping[str, Limit],
        of_address: Counted,
        of_user: Counted,
    ) -> None:
        self._throttle = throttle
        self._limits = limits
        self._of_address = of_address
        self._of_user = of_user

    def telling_failures(self, is_user_known: bool) -> int:
        """Return the failures in this window if they are worth an audit row, else 0.

        They are those of the user or, for an unknown name, those of the address: an address that
        tries many names fills no audit log.
        """
        counted, limit = self._of_address, OF_ADDRESS
        if is_user_known:
            counted, limit = self._of_user, OF_USER
        return counted.attempts if counted.is_telling(limit) else 0

    def succeeded(self) -> None:
        """Take the count back: only failures count."""
        for subject, limit in self._limits.items():
            self._throttle.forget(subject, limit)


class _OwnCounters:
    """The counters of one process. Each call changes one entry, so threads need no lock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}  # attempts, end of the window

    def count(self, subject: str, limit: Limit) -> Counted:
        """Count an attempt."""
        now_mono = self._clock()
        attempts, ends_mono = self._counts.get(subject, (0, 0.0))
        if ends_mono <= now_mono:
            attempts, ends_mono = 0, now_mono + limit.window_s
        if subject not in self._counts and len(self._counts) >= MOST_REMEMBERED:
            self._counts.pop(next(iter(self._counts)), None)
        self._counts[subject] = (attempts + 1, ends_mono)
        wait_s = 0 if attempts < limit.failures else max(1, round(ends_mono - now_mono))
        return Counted(attempts + 1, wait_s)

    def forget(self, subject: str) -> None:
        attempts, ends_mono = self._counts.get(subject, (0, 0.0))
        if attempts > 0:
            self._counts[subject] = (attempts - 1, ends_mono)


def _subject(kind: str, text: str) -> str:
    """A short name of what is counted. A user name may be a mistyped password, so it is hashed."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:20]
    return f"{kind}:{digest}"
