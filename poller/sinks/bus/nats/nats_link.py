"""One connection to NATS: messages of a batch are published together, then all acks are awaited.

nats-py's own `publish_async` never ends for a message that JetStream refuses, so the inbox of the
acks is read here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

#: Headers count for the largest payload, too.
HEADER_BYTES = 512
_CLOSE_S = 1.0
_NO_RESPONDERS = "503"


class Outgoing(NamedTuple):
    """A message on its way."""

    subject: str
    id: str
    payload: bytes


class Refusal(NamedTuple):
    """JetStream's reason not to store a message. Code 0: no stream has the subject."""

    message: Outgoing
    code: int
    text: str


class NatsLink:
    """A connection. After any error it is closed, and a new one is made."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._inbox = ""
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._number = 0
        self._error: Exception | None = None

    @classmethod
    async def connect(cls, server: str, options: dict[str, Any]) -> NatsLink:
        """Connect to one server. Raises nats.errors.Error and OSError."""
        client = Client()
        link = cls(client)
        try:
            await client.connect(
                [server],
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                error_cb=link._on_error,
                disconnected_cb=link._on_disconnected,
                **options,
            )
            link._inbox = client.new_inbox()
            await client.subscribe(f"{link._inbox}.*", cb=link._on_ack)
        except nats.errors.NoServersError:
            raise link._error or nats.errors.NoServersError() from None
        except BaseException:
            await link.close()
            raise
        return link

    @property
    def max_payload(self) -> int:
        """The bytes of one message's payload at most."""
        return int(self.client.max_payload) - HEADER_BYTES

    async def publish(self, messages: Sequence[Outgoing]) -> list[Refusal]:
        """Publish all messages in order and wait for their acks. Returns those not stored."""
        loop = asyncio.get_running_loop()
        acks = []
        for message in messages:
            self._number += 1
            token = str(self._number)
            ack = loop.create_future()
            self._waiting[token] = ack
            acks.append(ack)
            await self.client.publish(
                message.subject,
                message.payload,
                reply=f"{self._inbox}.{token}",
                headers={"Nats-Msg-Id": message.id},
            )
        await self.client.flush()
        answers = await asyncio.gather(*acks)
        refusals = []
        for message, answer in zip(messages, answers, strict=True):
            if answer is not None:
                refusals.append(Refusal(message, *answer))
        return refusals

    async def close(self) -> None:
        """End the connection, also one whose server takes no more bytes."""
        with suppress(Exception):  # door: nats-py raises anything for a half-open connection
            await asyncio.wait_for(self.client.close(), _CLOSE_S)
            return
        # The client has no way to give up bytes that a silent server does not take.
        writer = getattr(getattr(self.client, "_transport", None), "_io_writer", None)
        if writer is not None:
            writer.transport.abort()

    async def _on_ack(self, answer: Msg) -> None:
        ack = self._waiting.pop(answer.subject.rpartition(".")[2], None)
        if ack is not None and not ack.done():
            ack.set_result(_refusal_of(answer))

    async def _on_error(self, error: Exception) -> None:
        """Remember why a server did not take the connection; nats-py says only that none did."""
        self._error = error

    async def _on_disconnected(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for ack in waiting.values():
            if not ack.done():
                ack.set_exception(nats.errors.ConnectionClosedError())
                ack.exception()  # read, so that asyncio does not log it


def _refusal_of(answer: Msg) -> tuple[int, str] | None:
    """Return code and text of an error, None for a message that is stored or was before."""
    if answer.headers and answer.headers.get("Status") == _NO_RESPONDERS:
        return 0, "no stream has this subject"
    try:
        error = json.loads(answer.data).get("error")
    except (ValueError, AttributeError):
        return -1, "the answer is no ack of JetStream"
    if error is None:
        return None
    return int(error.get("err_code", -1)), str(error.get("description", ""))
