"""Tickets of polls on demand: who may read the results of which targets, for an hour."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

KEEP_S = 3_600
#: Tickets at the same time. The oldest make room for new ones.
MOST_TICKETS = 1_000


@dataclass(frozen=True, slots=True)
class PollTicket:
    """Polls that were requested. The results are those that end at or after `requested_ms`."""

    requested_ms: int
    ids: Sequence[int]
    site: str | None  # the site of the token that requested them; None: any


def keep(client: redis.Redis, keys: Keys, name: str, ticket: PollTicket) -> None:
    """Store a ticket, and remove the oldest ones above the limit. Raises StoreError."""
    record = json.dumps([ticket.requested_ms, list(ticket.ids), ticket.site])
    with store_errors(client):
        pipe = client.pipeline()
        pipe.set(keys.ticket(name), record, ex=KEEP_S)
        pipe.zadd(keys.tickets, {name: ticket.requested_ms})
        pipe.expire(keys.tickets, KEEP_S)
        pipe.zremrangebyscore(keys.tickets, "-inf", ticket.requested_ms - KEEP_S * 1000)
        pipe.zrange(keys.tickets, 0, -MOST_TICKETS - 1)
        *_, surplus = pipe.execute()
        if surplus:
            client.delete(*(keys.ticket(old) for old in surplus))
            client.zrem(keys.tickets, *surplus)


def read(client: redis.Redis, keys: Keys, name: str) -> PollTicket | None:
    """Return a ticket; None for one that is unknown or over. Raises StoreError."""
    with store_errors(client):
        record: Any = client.get(keys.ticket(name))
    if record is None:
        return None
    requested_ms, ids, site = json.loads(record)
    return PollTicket(requested_ms, ids, site)
