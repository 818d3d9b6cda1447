"""Links to agents, kept from one poll to the next: opening and closing one costs a tenth of a small poll.

Only a link on which everything went well is kept. There are never more of them than the process can afford.
"""

from __future__ import annotations

import asyncio
import resource
from collections import OrderedDict
from typing import NamedTuple

from poller.collectors.snmp.engines.engine_protocol import Link

IDLE_S = 600.0
MOST = 8192
#: Of the files this process may open, one in so many may be a link that nobody uses just now.
SHARE = 8


class Way(NamedTuple):
    """Who is asked, and how. Never printed: it holds a secret."""

    address: str
    port: int
    version: str
    #: The community, or what tells SNMPv3 users apart.
    secret: str
    context: str = ""
    engine: str = "gufo"
    #: Links of one poll to one agent, side by side, are told apart by it.
    number: int = 0

    def __repr__(self) -> str:
        return f"<Way to {self.address} port {self.port}>"


class Links:
    """Of one process. All of it on one loop; links of a loop that is gone are left to it."""

    def __init__(self, most: int | None = None) -> None:
        self._most = (
            most
            if most is not None
            else min(MOST, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SHARE)
        )
        self._idle: OrderedDict[Way, tuple[Link, float]] = OrderedDict()  # the longest unused first
        self._loop: asyncio.AbstractEventLoop | None = None

    def __len__(self) -> int:
        return len(self._idle)

    def take(self, way: Way) -> Link | None:
        """One that was kept; it is the caller's until it is kept again or closed."""
        self._settle_in()
        link, _ = self._idle.pop(way, (None, 0.0))
        if link is not None:
            link.wake()
        return link

    def keep(self, way: Way, link: Link) -> None:
        """After a poll that went well. Two polls of one device may have had a link each: one is enough.

        When there are too many, those that are there stay as long as they are used. Devices come in turns: to make
        room for each would be to close every link shortly before its next poll.
        """
        now = asyncio.get_running_loop().time()
        while self._idle and next(iter(self._idle.values()))[1] < now - IDLE_S:
            self._idle.popitem(last=False)[1][0].close()
        if way in self._idle or len(self._idle) >= self._most:
            link.close()
            return
        link.rest()
        self._idle[way] = link, now

    def close(self) -> None:
        while self._idle:
            self._idle.popitem()[1][0].close()

    def _settle_in(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._idle.clear()
            self._loop = loop
