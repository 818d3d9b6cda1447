"""One budget of tries and time for each call to Redis.

redis-py retries in three places, one inside the other: the command, the connection it needs, and
the check of that connection. On a silent server the tries would multiply. Here only the outermost
place tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from redis.backoff import ExponentialWithJitterBackoff, NoBackoff
from redis.retry import Retry

T = TypeVar("T")


class CallBudget(Retry):
    """The retries of one connection, which serves one thread at a time.

    `retries` is the number of tries after the first. No try starts later than `within_s` after the
    beginning of the call.
    """

    def __init__(self, retries: int, within_s: float) -> None:
        super().__init__(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries)
        self._within_s = within_s
        self._once = Retry(NoBackoff(), 0)
        self._is_calling = False

    def call_with_retry(
        self, do: Callable[[], T], fail: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> T:
        """Try until `do` succeeds or the budget is spent. `fail` is called after each failure."""
        if self._is_calling:
            return self._once.call_with_retry(do, fail, *args, **kwargs)
        last_try_mono = time.monotonic() + self._within_s

        def fail_in_time(error: Exception, *count: int) -> None:
            fail(error, *count)
            if time.monotonic() > last_try_mono:
                raise error

        self._is_calling = True
        try:
            return super().call_with_retry(do, fail_in_time, *args, **kwargs)
        finally:
            self._is_calling = False
