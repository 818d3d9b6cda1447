"""The Redis client every role shares: short time-outs, a few quick retries, errors translated to ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from poller import errors
from poller.state import redis_errors

SOCKET_TIMEOUT_S = 1.5


def connect(url: str, timeout_s: float = SOCKET_TIMEOUT_S, retries: int = 2) -> redis.Redis:
    """A client that answers text. Every script we retry is safe to run twice (see the .lua files)."""
    try:
        return redis.Redis.from_url(
            url,
            decode_responses=True,
            encoding_errors="replace",  # what others wrote must not stop us
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            socket_keepalive=True,
            health_check_interval=3,
            retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries),
        )
    except ValueError as error:
        raise errors.InvalidSetting(
            f"redis_url: {error}", hint="write redis://host:port/0"
        ) from None


def where(client: redis.Redis) -> str:
    """The server's address for people: no user, no password."""
    options = client.connection_pool.connection_kwargs
    if "path" in options:
        return str(options["path"])
    return f"{options.get('host', 'localhost')}:{options.get('port', 6379)}/{options.get('db', 0) or 0}"


@contextmanager
def store_errors(client: redis.Redis) -> Iterator[None]:
    """Translate redis-py's exceptions; nobody above this package sees one."""
    try:
        yield
    except redis_errors.EXPECTED as error:
        raise redis_errors.translate(error, where(client)) from error
