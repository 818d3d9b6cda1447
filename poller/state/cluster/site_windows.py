"""Sites: windows of their recent polls, and the outages of dark sites."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from redis import Redis

from poller.domain.failures.site_outage import Outage, Window
from poller.state.keys import SLICE_MS, Keys
from poller.state.redis_client import store_errors

#: Slices of the short window. With an interval of some seconds, five failures in a row open the
#: breaker of a target before most polls of a minute have failed.
SHORT_SLICES = 2
#: Slices of the long window: one minute.
MINUTE_SLICES = 6


def windows(client: Redis, keys: Keys, now_ms: int) -> dict[str, list[Window]]:
    """The short and the long window of each site. Raises StoreError."""
    pipe = client.pipeline(transaction=False)
    for slice_number in _last_minute(now_ms):
        pipe.hgetall(keys.sites(slice_number))

    with store_errors(client):
        slices = pipe.execute()

    by_site: dict[str, list[Window]] = {}
    for length in (SHORT_SLICES, MINUTE_SLICES):
        for site, window in _windows(slices[:length]).items():
            by_site.setdefault(site, []).append(window)

    return by_site


def clear_windows(client: Redis, keys: Keys, site: str, now_ms: int) -> None:
    """Forget the recent polls of a site that is back. Raises StoreError."""
    pipe = client.pipeline(transaction=False)
    for slice_number in _last_minute(now_ms):
        key = keys.sites(slice_number)
        pipe.hdel(key, f"{site}|polls", f"{site}|dark")

    with store_errors(client):
        pipe.execute()


def counter_names(site: str) -> tuple[str, str]:
    """The counters of a site for `Board.finish`: all polls, and polls that reached no device."""
    return f"s:{site}|polls", f"s:{site}|dark"


def dark(client: Redis, keys: Keys) -> dict[str, Outage]:
    """The outages of dark sites, by site. Raises StoreError."""
    with store_errors(client):
        texts = client.hgetall(keys.dark).values()

    outages = {}
    for text in texts:
        outage = parse_outage(str(text))
        if outage:
            outages[outage.site] = outage

    return outages


def store(client: Redis, keys: Keys, outage: Outage) -> None:
    """Store the outage of a dark site. Raises StoreError."""
    text = json.dumps(asdict(outage))
    with store_errors(client):
        client.hset(keys.dark, outage.site, text)


def forget(client: Redis, keys: Keys, site: str) -> None:
    """Remove the outage of a site that is back. Raises StoreError."""
    with store_errors(client):
        client.hdel(keys.dark, site)


def _last_minute(now_ms: int) -> list[int]:
    """The numbers of the slices of the last minute, newest first."""
    newest = now_ms // SLICE_MS
    return list(range(newest, newest - MINUTE_SLICES, -1))


def _windows(slices: Sequence[Mapping[str, str]]) -> dict[str, Window]:
    polls: Counter[str] = Counter()
    dark_polls: Counter[str] = Counter()
    for fields in slices:
        for field, text in fields.items():
            site, _, kind = field.rpartition("|")
            number = int(text) if text.isdigit() else 0
            if kind == "dark":
                dark_polls[site] += number
            else:
                polls[site] += number

    seconds = len(slices) * SLICE_MS // 1000
    by_site = {}
    for site in polls:
        by_site[site] = Window(polls[site], dark_polls[site], seconds)

    return by_site


def parse_outage(text: str) -> Outage | None:
    """The stored outage, or None for one that another release or program wrote."""
    try:
        fields: dict[str, Any] = json.loads(text)
        fields["canaries"] = tuple(int(target_id) for target_id in fields["canaries"])
        return Outage(**fields)
    except (ValueError, TypeError, KeyError):
        return None
