"""Pub/sub wake-ups: an edit, a demand or a worker wakes the leader; a new queue wakes workers.

A lost wake-up costs time only, since every listener also checks periodically.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

from poller.observability import logs

log = logs.get(__name__)

#: Passed to the callback after every subscription: earlier wake-ups may be lost.
RESUBSCRIBED = "resubscribed"
#: Pause before a new subscription after an error.
RECONNECT_S = 0.5


def listen(
    client: redis.Redis, channel: str, on_wakeup: Callable[[str], None], stopping: threading.Event
) -> None:
    """Call `on_wakeup` for every message, from a thread that survives an outage of Redis."""
    arguments = (client, channel, on_wakeup, stopping)
    thread = threading.Thread(target=_listen, args=arguments, name="wakeups", daemon=True)
    thread.start()


def _listen(
    client: redis.Redis, channel: str, on_wakeup: Callable[[str], None], stopping: threading.Event
) -> None:
    while not stopping.is_set():
        try:
            with client.pubsub(ignore_subscribe_messages=True) as pubsub:  # type: ignore[no-untyped-call]
                pubsub.subscribe(channel)
                on_wakeup(RESUBSCRIBED)
                while not stopping.is_set():
                    message = pubsub.get_message(timeout=1.0)
                    if message:
                        on_wakeup(str(message["data"]))
        except (redis.RedisError, OSError) as error:
            log.warning("wakeups_interrupted", error=str(error))
            stopping.wait(RECONNECT_S)
        except Exception:  # door: the end of this thread; it must not die
            log.exception("wakeups_broke")
            stopping.wait(RECONNECT_S)
