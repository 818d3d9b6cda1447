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
#: How often an idle subscription asks the server for a sign of life, and how many unanswered
#: requests end it. After the first unanswered one it asks at every pass of the loop.
CHECK_S = 3
MAX_UNANSWERED = 3
#: Length of one pass of the loop.
PASS_S = 1.0


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
                pubsub.connection.health_check_interval = CHECK_S
                on_wakeup(RESUBSCRIBED)
                while not stopping.is_set():
                    message = pubsub.get_message(timeout=PASS_S)
                    if message:
                        on_wakeup(str(message["data"]))
                    elif pubsub.health_check_response_counter > MAX_UNANSWERED:
                        raise redis.ConnectionError("the server does not answer")
        except (redis.RedisError, OSError) as error:
            log.warning("wakeups_interrupted", error=str(error))
            stopping.wait(RECONNECT_S)
        except Exception:  # door: the end of this thread; it must not die
            log.exception("wakeups_broke")
            stopping.wait(RECONNECT_S)
