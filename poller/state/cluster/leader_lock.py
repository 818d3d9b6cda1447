"""Leadership: RedBeat's lock with one stable token per process. The clock of the lock is the server's."""

from __future__ import annotations

import os
import secrets
import socket
from functools import cached_property

import redis
from redis.commands.core import Script

from poller.state.board import lua_scripts
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

FORGET_STANDBY_MS = 60_000


class Leadership:
    """The lock's three moves. Holds no opinion on when to make them; see beat/leadership.py."""

    def __init__(self, client: redis.Redis, keys: Keys, lock_ms: int) -> None:
        self.redis = client
        self.keys = keys
        self.lock_ms = lock_ms
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self.token = f"{self.name}:{secrets.token_hex(8)}"

    def take(self) -> tuple[int, bool]:
        """Lead if nobody else does. Returns (epoch, newly taken); epoch 0 means somebody else leads."""
        return self._lead(renew_only=False)

    def renew(self) -> bool:
        """Prolong our own leadership; never takes it anew."""
        return self._lead(renew_only=True)[0] > 0

    def resign(self) -> bool:
        with store_errors(self.redis):
            return bool(self._scripts["resign"](keys=[self.keys.prefix], args=[self.token]))

    def stand_by(self, now_ms: int) -> None:
        """Be seen as a standby; entries not refreshed for a while do not count, and go."""
        with store_errors(self.redis):
            pipe = self.redis.pipeline(transaction=False)
            pipe.zadd(self.keys.standbys, {self.name: now_ms})
            pipe.zremrangebyscore(self.keys.standbys, "-inf", now_ms - FORGET_STANDBY_MS)
            pipe.execute()

    def leave(self) -> None:
        with store_errors(self.redis):
            self.redis.zrem(self.keys.standbys, self.name)

    def _lead(self, renew_only: bool) -> tuple[int, bool]:
        arguments: list[str | int] = [self.token, self.lock_ms, self.name, int(renew_only)]
        with store_errors(self.redis):
            epoch, fresh = self._scripts["lead"](keys=[self.keys.prefix], args=arguments)
        return int(epoch), bool(fresh)

    @cached_property
    def _scripts(self) -> dict[str, Script]:
        return lua_scripts.load(self.redis, ("lead", "resign"))
