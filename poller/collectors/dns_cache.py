"""Resolves host names to IP addresses without blocking the event loop, and caches the results."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
from dataclasses import dataclass, field

from poller import errors
from poller.collectors import file_limit

_CACHE_S = 300.0
_CACHE_FAILURE_S = 15.0
_MAX_NAMES = 100_000


@dataclass(slots=True)
class Resolver:
    """The name cache of one process. IP literals pass through."""

    #: Host to the instant the entry expires and its address; "" for a name without one.
    _cache: dict[str, tuple[float, str]] = field(default_factory=dict)

    async def address(self, host: str) -> str:
        """Return an IP literal for a host.

        Raises DeviceUnreachable if the name has no address, CollectorBusy if no socket is left
        for the lookup.
        """
        now = asyncio.get_running_loop().time()
        expires_at, address = self._cache.get(host, (0.0, ""))
        if expires_at < now:
            expires_at, address = await self._look_up(host, now)
            if len(self._cache) >= _MAX_NAMES:
                self._cache.clear()
            self._cache[host] = (expires_at, address)
        if not address:
            text = f'the name "{host}" has no address'
            raise errors.DeviceUnreachable(text, cause="DNS does not know it")
        return address

    async def _look_up(self, host: str, now: float) -> tuple[float, str]:
        if is_literal(host):
            return math.inf, host
        loop = asyncio.get_running_loop()
        try:
            results = await loop.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            busy = file_limit.no_file_left(error, host)
            if busy is not None:
                raise busy from None
            return now + _CACHE_FAILURE_S, ""
        socket_address = results[0][4]
        return now + _CACHE_S, str(socket_address[0])


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
