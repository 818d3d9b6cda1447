"""The Redis client of every role: short timeouts, quick retries, errors translated to ours."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import redis

from poller import errors
from poller.metering import process_metrics
from poller.state import redis_errors
from poller.state.call_budget import CallBudget

#: The longest wait for one reply of the server.
SOCKET_TIMEOUT_S = 1.5
#: A try of a call starts within this many waits: a call to a silent server ends after two tries.
TRIES_WITHIN = 1.5


def connect(url: str, timeout_s: float = SOCKET_TIMEOUT_S, retries: int = 2) -> redis.Redis:
    """Return a client that decodes text. Raises InvalidSetting.

    The client retries commands: every script is safe to run twice (see the .lua files). So a
    connection needs no check before use: a call that meets a dead one repeats on a new one.
    """
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",  # texts of other programs must not stop us
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            socket_keepalive=True,
            retry=CallBudget(retries, TRIES_WITHIN * timeout_s),
            **_short_greeting(),
        )
    except ValueError as error:
        raise errors.InvalidSetting(
            f"redis_url: {error}", hint="write redis://host:port/0"
        ) from None


def _short_greeting() -> dict[str, Any]:
    """Options that spare three round trips of each new connection, where this redis-py has them.

    It would tell the server its own name and version, and ask for notices that Valkey and Redis do
    not send.
    """
    options: dict[str, Any] = {}
    if find_spec("redis.driver_info"):
        options["driver_info"] = None
    if find_spec("redis.maint_notifications"):
        from redis.maint_notifications import MaintNotificationsConfig

        options["maint_notifications_config"] = MaintNotificationsConfig(enabled=False)
    return options


def where(client: redis.Redis) -> str:
    """The address of the server for people, without user and password."""
    options = client.connection_pool.connection_kwargs
    if "path" in options:
        return str(options["path"])
    host = options.get("host", "localhost")
    port = options.get("port", 6379)
    database = options.get("db") or 0
    return f"{host}:{port}/{database}"


@contextmanager
def store_errors(client: redis.Redis, call: str = "other") -> Iterator[None]:
    """Translate exceptions of redis-py; none leaves this package. Time the call by its name."""
    started_mono = time.monotonic()
    try:
        yield
    except redis_errors.EXPECTED as error:
        process_metrics.redis_errors.add(type(error).__name__)
        raise redis_errors.translate(error, where(client)) from error
    finally:
        process_metrics.redis_seconds.observe(time.monotonic() - started_mono, call)
