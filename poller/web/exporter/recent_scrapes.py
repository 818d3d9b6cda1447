"""Scrapes that repeat byte by byte, answered from memory before the request is even parsed.

Prometheus sends the same head for the same target at every scrape. A head that passed every check
a moment ago, from the same peer, needs no second look at its parts: the token and the inventory are
looked up again in memory, and anything that is not at hand takes the usual way.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate

from poller.service.scrapes.known_devices import KnownDevices
from poller.service.scrapes.last_poll_answers import LastPollAnswers
from poller.service.scrapes.snmp_scrape import Known
from poller.web.exporter import scrape_counts

#: Heads that are kept; the least recently used gives way.
MOST_HEADS = 50_000
#: Longer heads and larger bodies take the usual way; large bodies are compressed there.
MOST_HEAD = 2_048
MOST_BODY = 262_144
#: Content type of a scrape, as snmp_exporter has it.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: The head of a request in the scope of ASGI, if it may be answered from memory next time.
HEAD = "poller.head"
#: Headers that change what follows a head: a body, an end of the connection, another protocol.
SPECIAL = ("connection", "content-length", "transfer-encoding", "expect", "upgrade", "range")
PREFIXES = (b"GET /snmp?", b"GET /probe?")
_END = b"\r\n\r\n"

#: Whether the actor of a head may still scrape; False also if that is not at hand.
MayScrape = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class _Repeated:
    path: str
    known: Known
    may_scrape: MayScrape


class RecentScrapes:
    """The heads of scrapes that last polls answer. Used on one event loop."""

    def __init__(self, devices: KnownDevices, answers: LastPollAnswers) -> None:
        self._devices = devices
        self._answers = answers
        self._repeated: OrderedDict[tuple[bytes, str], _Repeated] = OrderedDict()
        self._date = (0, b"")
        self.extra_headers = b""  # of every response

    def is_repeated(self, head: bytes, peer: str) -> bool:
        """Whether these bytes are a head that was answered before."""
        return (head, peer) in self._repeated

    def response(self, head: bytes, peer: str) -> bytes | None:
        """Return the whole response to a repeated head; None if it takes the usual way."""
        key = (head, peer)
        repeated = self._repeated.get(key)
        if repeated is None:
            return None
        known = repeated.known
        devices = self._devices.kept(known.text)
        if devices is not known.devices or not repeated.may_scrape():
            if devices is not None and devices is not known.devices:
                del self._repeated[key]
            return None
        body = self._answers.quick(known.wanted)
        if body is None or len(body) > MOST_BODY:
            return None
        self._repeated.move_to_end(key)
        scrape_counts.count_repeated(repeated.path)
        return b"".join((self._head(len(body)), body))

    def remember(
        self, head: bytes, peer: str, path: str, known: Known, may_scrape: MayScrape
    ) -> None:
        """Keep a head that passed every check and whose answer is a last poll."""
        self._repeated[head, peer] = _Repeated(path, known, may_scrape)
        if len(self._repeated) > MOST_HEADS:
            self._repeated.popitem(last=False)

    def _head(self, length: int) -> bytes:
        now_s = int(time.time())
        if self._date[0] != now_s:
            date = formatdate(now_s, usegmt=True).encode()
            self._date = (
                now_s,
                b"HTTP/1.1 200 OK\r\ndate: "
                + date
                + b"\r\ncontent-type: "
                + CONTENT_TYPE.encode()
                + b"\r\n"
                + self.extra_headers,
            )
        return b"%scontent-length: %d\r\n\r\n" % (self._date[1], length)


def is_head(data: bytes) -> bool:
    """Whether these bytes are one whole request for a scrape, and nothing else."""
    return (
        len(data) <= MOST_HEAD
        and data.startswith(PREFIXES)
        and data.endswith(_END)
        and data.count(_END) == 1
        and b" HTTP/1.1\r\n" in data
    )
