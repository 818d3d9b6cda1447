"""Host names to IP addresses: asynchronous and remembered, because the engine takes literals only."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from dataclasses import dataclass, field

from poller import errors
from poller.collectors import file_limit

_KEEP_S = 300.0
_KEEP_FAILURE_S = 15.0
_LIMIT = 100_000


@dataclass(slots=True)
class Resolver:
    """One per process. Literals pass through; names are looked up at most every five minutes."""

    _known: dict[str, tuple[float, str]] = field(default_factory=dict)

    async def address(self, host: str) -> str:
        """An IP literal; DeviceUnreachable when the name has none, CollectorBusy when nobody could be asked."""
        now = asyncio.get_running_loop().time()
        until, address = self._known.get(host, (0.0, ""))
        if until < now:
            until, address = await self._look_up(host, now)
            if len(self._known) >= _LIMIT:
                self._known.clear()
            self._known[host] = (until, address)
        if not address:
            raise errors.DeviceUnreachable(
                f'the name "{host}" has no address', cause="DNS does not know it"
            )
        return address

    async def _look_up(self, host: str, now: float) -> tuple[float, str]:
        if is_literal(host):
            return float("inf"), host
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_DGRAM)
        except (OSError, UnicodeError) as error:
            if (short := file_limit.of_files(error, host)) is not None:
                raise short from None
            return now + _KEEP_FAILURE_S, ""
        return now + _KEEP_S, str(found[0][4][0])


def is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
