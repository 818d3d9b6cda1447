"""The leader lock: RedBeat's lock with one stable token per process. Its clock is the server's."""

from __future__ import annotations

import os
import secrets
import socket

from redis import Redis

from poller.state.board.lua_scripts import Scripts
from poller.state.cluster import beat_registry
from poller.state.cluster.beat_registry import BeatInstance
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

FORGET_STANDBY_MS = 60_000


class Leadership:
    """The moves of the lock; beat/leadership.py decides on them. Every method raises StoreError."""

    def __init__(self, client: Redis, keys: Keys, lock_ms: int, name: str = "") -> None:
        self.redis = client
        self.keys = keys
        self.lock_ms = lock_ms

        self.process = f"{socket.gethostname()}:{os.getpid()}"
        self.name = name or self.process
        self.token = f"{self.name}:{secrets.token_hex(8)}"
        self._entries = 0  # in RedBeat's schedule, as last seen
        self._scripts = Scripts(client, keys)

    def take(self) -> tuple[int, bool]:
        """Lead if no other process does.

        Returns (epoch, newly taken). Epoch 0 means that another process leads.
        """
        return self._lead(renew_only=False)

    def renew(self) -> bool:
        """Extend our own leadership; a lost one is not taken again. Returns whether we lead."""
        epoch, _ = self._lead(renew_only=True)
        return epoch > 0

    def resign(self) -> bool:
        """Leave for good: end our own leadership, so that a standby leads at once.

        Returns whether we led.
        """
        return bool(self._scripts.run("resign", [self.token, self.name]))

    def stand_by(self, now_ms: int) -> None:
        """Record a heartbeat of this standby, and drop the standbys that stopped sending them."""
        standbys = self.keys.standbys
        lost_before_ms = now_ms - FORGET_STANDBY_MS
        beat = BeatInstance(
            self.name,
            leads=False,
            election=True,
            jobs=self._entries,
            seen_ms=now_ms,
            process=self.process,
        )

        pipe = self.redis.pipeline(transaction=False)
        pipe.zadd(standbys, {self.name: now_ms})
        pipe.zremrangebyscore(standbys, "-inf", lost_before_ms)
        beat_registry.add_to(pipe, self.keys, beat)
        pipe.zcard(self.keys.schedule)
        with store_errors(self.redis):
            added, _, _, entries = pipe.execute(raise_on_error=False)
            if isinstance(added, Exception):
                raise added
        self._entries = entries if isinstance(entries, int) else 0

    def _lead(self, renew_only: bool) -> tuple[int, bool]:
        arguments = [
            self.token,
            self.lock_ms,
            self.name,
            int(renew_only),
        ]
        epoch, newly_taken = self._scripts.run("lead", arguments)
        return int(epoch), bool(newly_taken)
