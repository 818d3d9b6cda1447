"""Notes that save somebody a wait: for the leader (an edit, a demand, a worker), for the workers (a domain came or
went). A lost note only costs time: there are backup checks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import redis

from poller.observability import logs

log = logs.get(__name__)

#: Said to ourselves after every (re)subscription: notes may have been missed.
RESUBSCRIBED = "resubscribed"


def listen(
    client: redis.Redis, channel: str, on_note: Callable[[str], None], stopping: threading.Event
) -> None:
    """Call `on_note` for every note, from a thread of its own that survives a Redis that is down."""
    words = (client, channel, on_note, stopping)
    threading.Thread(target=_keep_listening, args=words, name="wakeups", daemon=True).start()


def _keep_listening(
    client: redis.Redis, channel: str, on_note: Callable[[str], None], stopping: threading.Event
) -> None:
    while not stopping.is_set():
        try:
            with client.pubsub(ignore_subscribe_messages=True) as heard:  # type: ignore[no-untyped-call]
                heard.subscribe(channel)
                on_note(RESUBSCRIBED)
                while not stopping.is_set():
                    message = heard.get_message(timeout=1.0)
                    if message:
                        on_note(str(message["data"]))
        except (redis.RedisError, OSError) as error:
            log.warning("wakeups_interrupted", error=str(error))
            stopping.wait(0.5)
        except Exception:
            log.exception("wakeups_broke")
            stopping.wait(0.5)
