"""Polls of scrapes in Redis: each runs once however many ask, and all get its result."""

from __future__ import annotations

import enum

import redis

from poller.state.board.lua_scripts import Scripts
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


class Place(enum.Enum):
    """The findings of an asking process."""

    RESULT = "result"
    PENDING = "pending"  # another process has sent the poll
    FULL = "full"  # as many run as may run
    SHARE = "share"  # as many of this scraper run as its share is, beside other scrapers
    SEND = "send"  # this process has to send it


class ScrapeExchange:
    """The scrape polls of the cluster. Every method raises StoreError."""

    def __init__(self, client: redis.Redis, keys: Keys) -> None:
        self._redis = client
        self._keys = keys
        self._scripts = Scripts(client, keys)

    def open(
        self, name: str, caller: str, time_ms: int, most: int, scraper: str
    ) -> tuple[Place, str]:
        """Begin a poll that ends within `time_ms`. `caller` is a number in hex.

        Returns the place, with the result, with the instant in ms of a poll to be sent, or with the
        scraper's share.
        """
        reply = self._scripts.run("open_scrape", [name, caller, time_ms, most, scraper])
        return Place(reply[0]), str(reply[1]) if len(reply) > 1 else ""

    def finish(self, name: str, result: str, keep_ms: int) -> None:
        """Store a result for those who wait, and tell them."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.set(self._keys.scrape(name), result, px=max(1, keep_ms))
        pipe.zrem(self._keys.scrapes, name)
        pipe.publish(self._keys.scraped, name)
        with store_errors(self._redis):
            pipe.execute()

    def withdraw(self, name: str) -> None:
        """Forget a poll that could not be sent."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.delete(self._keys.scrape(name))
        pipe.zrem(self._keys.scrapes, name)
        with store_errors(self._redis):
            pipe.execute()
