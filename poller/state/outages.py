"""Sites: what their polls found lately, and which of them are dark. Read and written by the leader, shown to people."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Any

import redis

from poller.domain.site import Outage, Window
from poller.state.board import SLICE_MS
from poller.state.client import store_errors
from poller.state.keys import Keys

#: The last minute.
SLICES = 6


def windows(client: redis.Redis, keys: Keys, now_ms: int) -> dict[str, Window]:
    """By site, what was polled in the last minute."""
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for number in range(now_ms // SLICE_MS - SLICES + 1, now_ms // SLICE_MS + 1):
            pipe.hgetall(keys.sites(number))
        slices = pipe.execute()
    polls: Counter[str] = Counter()
    dark: Counter[str] = Counter()
    for piece in slices:
        for field, number in piece.items():
            site, _, kind = field.rpartition("|")
            (dark if kind == "dark" else polls)[site] += int(number)
    return {site: Window(polls[site], dark[site]) for site in polls}


def counted(site: str) -> tuple[str, str]:
    """The statistics' fields of one site, for `Board.finish`: its polls, and those that found nobody."""
    return f"s:{site}|polls", f"s:{site}|dark"


def dark(client: redis.Redis, keys: Keys) -> dict[str, Outage]:
    with store_errors(client):
        texts = [str(text) for text in client.hgetall(keys.dark).values()]
    return {outage.site: outage for outage in map(_outage, texts) if outage}


def note(client: redis.Redis, keys: Keys, outage: Outage) -> None:
    with store_errors(client):
        client.hset(keys.dark, outage.site, json.dumps(asdict(outage)))


def forget(client: redis.Redis, keys: Keys, site: str) -> None:
    with store_errors(client):
        client.hdel(keys.dark, site)


def _outage(text: str) -> Outage | None:
    """None for what no leader of this version wrote."""
    try:
        fields: dict[str, Any] = json.loads(text)
        return Outage(**{**fields, "canaries": tuple(int(i) for i in fields["canaries"])})
    except (ValueError, TypeError, KeyError):
        return None
