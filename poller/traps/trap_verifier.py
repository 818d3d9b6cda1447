"""Is it true, and does it matter? A datagram from a known address, opened with the credentials of who lives there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller import errors
from poller.collectors.credentials import Credential
from poller.db.inventory.trap_senders import Sender
from poller.traps import trap_message, v3_traps
from poller.traps.engine_clocks import Clocks
from poller.traps.trap_message import COLD_START, LINK_DOWN, LINK_UP, WARM_START, Envelope, Notice
from poller.traps.trap_socket import Datagram

#: What has a device polled; anything else is only counted.
WANTED = frozenset((COLD_START, WARM_START, LINK_DOWN, LINK_UP))
#: Several devices may share an address: so many of their credentials are tried.
MOST_CREDENTIALS = 16

Opened = Mapping[int, Credential | errors.PollerError]
Fetch = Callable[[Collection[int]], Opened]


class Verdict(NamedTuple):
    """`result` is how it is counted; with `accepted`, who sent what. `answer` is for the sender."""

    result: str
    senders: tuple[Sender, ...] = ()
    notice: Notice | None = None
    answer: bytes | None = None


@dataclass(slots=True)
class Judge:
    """`fetch` opens stored credentials, in a thread; one that cannot be read is a StoreError."""

    fetch: Fetch
    keys: v3_traps.Keys = field(default_factory=v3_traps.Keys)
    clocks: Clocks = field(default_factory=Clocks)

    async def judge(self, datagram: Datagram, senders: Sequence[Sender], now_s: float) -> Verdict:
        """Raises StoreError when it may be a credential's that cannot be read."""
        try:
            envelope = self._envelope(datagram.content)
        except trap_message.Malformed:
            return Verdict("malformed")
        ids = list(dict.fromkeys(key for sender in senders for key in sender.credentials))[
            :MOST_CREDENTIALS
        ]
        opened = await asyncio.to_thread(self.fetch, ids)
        return self._verdict(envelope, senders, opened, now_s)

    def _envelope(self, content: bytes) -> Envelope:
        version = trap_message.version_of(content)
        if version == 3:
            return v3_traps.parse_secure(content, self.keys, self.clocks)
        return trap_message.parse_plain(content, version)

    def _verdict(
        self, envelope: Envelope, senders: Sequence[Sender], opened: Opened, now_s: float
    ) -> Verdict:
        worst = "bad_credential"
        for key, credential in _credentials(opened):
            try:
                notice = envelope.open(credential, now_s)
            except trap_message.Replayed:
                worst = "replayed"
                continue
            except trap_message.Refused:
                continue
            except trap_message.Malformed:
                return Verdict("malformed")
            who = tuple(sender for sender in senders if key in sender.credentials)
            return Verdict(
                "accepted" if notice.name in WANTED else "ignored", who, notice, envelope.answer()
            )
        for unread in opened.values():
            if isinstance(unread, errors.StoreError):
                raise unread
        return Verdict(worst)


def _credentials(opened: Opened) -> Iterator[tuple[int, Credential]]:
    for key, credential in opened.items():
        if isinstance(credential, Credential):
            yield key, credential
