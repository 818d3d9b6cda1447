"""Whether Redis takes writes. A full server, a replica or a failing disk refuses them."""

from __future__ import annotations

from redis import Redis

from poller import errors
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


def error(client: Redis, keys: Keys) -> str:
    """Why Redis takes no writes; empty if it does.

    SETRANGE with an empty value changes nothing, but is refused as every write is.
    """
    try:
        with store_errors(client):
            client.setrange(keys.epoch, 0, "")
    except errors.StoreError as refused:
        return refused.cause or refused.message
    return ""
