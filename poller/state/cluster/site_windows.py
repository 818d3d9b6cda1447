"""Sites: what their polls found lately, and which of them are dark. Read and written by the leader, shown to people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import redis

from poller.domain.failures.site_outage import Outage, Window
from poller.state.keys import SLICE_MS, Keys
from poller.state.redis_client import store_errors

#: What was polled lately, and in the last minute. With an interval of some seconds, five failures in a row open a
#: target's own breaker before most of a minute's polls have failed.
LATELY, MINUTE = 2, 6


def windows(client: redis.Redis, keys: Keys, now_ms: int) -> dict[str, list[Window]]:
    """By site, what was polled lately and in the last minute."""
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for number in _slices(now_ms):
            pipe.hgetall(keys.sites(number))
        slices = pipe.execute()
    found: dict[str, list[Window]] = {}
    for length in (LATELY, MINUTE):
        for site, window in _counted(slices[:length], length * SLICE_MS // 1000).items():
            found.setdefault(site, []).append(window)
    return found


def start_anew(client: redis.Redis, keys: Keys, site: str, now_ms: int) -> None:
    """A site is back: what its polls found before says nothing any more."""
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for number in _slices(now_ms):
            pipe.hdel(keys.sites(number), f"{site}|polls", f"{site}|dark")
        pipe.execute()


def _slices(now_ms: int) -> list[int]:
    """Of the last minute, the newest first."""
    newest = now_ms // SLICE_MS
    return list(range(newest, newest - MINUTE, -1))


def _counted(slices: Sequence[Mapping[str, str]], seconds: int) -> dict[str, Window]:
    polls: Counter[str] = Counter()
    dark: Counter[str] = Counter()
    for piece in slices:
        for field, number in piece.items():
            site, _, kind = field.rpartition("|")
            (dark if kind == "dark" else polls)[site] += int(number) if number.isdigit() else 0
    return {site: Window(polls[site], dark[site], seconds) for site in polls}


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
