"""Verifies a datagram from a known address with the credentials of the devices at that address."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller import errors
from poller.collectors.credentials import Credential
from poller.db.inventory.trap_senders import Sender
from poller.traps import trap_message, v3_traps
from poller.traps.engine_clocks import EngineClocks
from poller.traps.trap_message import (
    COLD_START,
    LINK_DOWN,
    LINK_UP,
    WARM_START,
    Notification,
    TrapMessage,
)
from poller.traps.trap_socket import Datagram

#: Notifications that cause a poll; others are only counted.
POLL_CAUSES = frozenset((COLD_START, WARM_START, LINK_DOWN, LINK_UP))
#: Maximum credentials to try for one datagram: several devices may share an address.
MAX_CREDENTIALS = 16

Credentials = Mapping[int, Credential | errors.PollerError]
FetchCredentials = Callable[[Collection[int]], Credentials]


class Verdict(NamedTuple):
    """`result` names its counter. `senders` are the devices whose credential opened the message."""

    result: str
    senders: tuple[Sender, ...] = ()
    notification: Notification | None = None
    #: Datagram to send back to the sender.
    acknowledgement: bytes | None = None


@dataclass(slots=True)
class TrapVerifier:
    """`fetch` opens stored credentials in a thread; an unreadable one is an error value."""

    fetch: FetchCredentials
    clocks: EngineClocks = field(default_factory=EngineClocks)

    async def verify(self, datagram: Datagram, senders: Sequence[Sender], now_s: float) -> Verdict:
        """Raises StoreError if an unreadable credential might open the message."""
        try:
            message = self._parse(datagram.content)
        except trap_message.Malformed:
            return Verdict("malformed")

        ids: dict[int, None] = {}
        for sender in senders:
            ids.update(dict.fromkeys(sender.credentials))
        credentials = await asyncio.to_thread(self.fetch, list(ids)[:MAX_CREDENTIALS])
        return _verdict(message, senders, credentials, now_s)

    def _parse(self, content: bytes) -> TrapMessage:
        """The message in a datagram. Raises Malformed."""
        version = trap_message.version_of(content)
        if version == 3:
            return v3_traps.parse_v3_trap(content, self.clocks)
        return trap_message.parse_community_trap(content, version)


def _verdict(
    message: TrapMessage, senders: Sequence[Sender], credentials: Credentials, now_s: float
) -> Verdict:
    """The verdict of the first credential that opens the message. Raises StoreError."""
    failure = "bad_credential"
    for key, credential in _readable(credentials):
        try:
            notification = message.open(credential, now_s)
        except trap_message.Replayed:
            failure = "replayed"
            continue
        except trap_message.Refused:
            continue
        except trap_message.Malformed:
            return Verdict("malformed")

        result = "accepted" if notification.name in POLL_CAUSES else "ignored"
        owners = tuple(sender for sender in senders if key in sender.credentials)
        return Verdict(result, owners, notification, message.acknowledgement())

    for error in credentials.values():
        if isinstance(error, errors.StoreError):
            raise error
    return Verdict(failure)


def _readable(credentials: Credentials) -> Iterator[tuple[int, Credential]]:
    """The credentials that could be opened, by id."""
    for key, credential in credentials.items():
        if isinstance(credential, Credential):
            yield key, credential
