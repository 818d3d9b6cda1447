"""Recorded replies: the replies of a real device in a readable file, replayed to a collector.

    # Once, with the real device:
    with recorded.recording("olt.json", "192.0.2.3", 23, hide=["secret"]) as port:
        asyncio.run(testing.collect(Olt(), "127.0.0.1", login, port=port))
    # In every test run:
    with recorded.replayed("olt.json") as port:
        asyncio.run(testing.collect(Olt(), "127.0.0.1", login, port=port))

TCP is replayed exchange by exchange, HTTP by method and path, UDP by the content of the request.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poller import errors
from poller.testing.background import Pair, background, pair
from poller.testing.relay import relayed

#: Makes the reply to send from the request now, the recorded request and the recorded reply.
Adjust = Callable[[bytes, bytes, bytes], bytes]

_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class Turn:
    """A request and the whole reply to it. The request is empty where the device speaks first."""

    ask: bytes = b""
    answer: bytes = b""

    @property
    def http(self) -> str:
        """Method and path of an HTTP request, as in `GET /path`; empty for any other request."""
        words = self.ask.partition(b"\r\n")[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return ""
        return b" ".join(words[:2]).decode("latin-1")


@dataclass(slots=True)
class Recording:
    """The exchanges of each connection, in their order."""

    protocol: str = "tcp"
    conversations: dict[int, list[Turn]] = field(default_factory=dict)

    def hear(self, protocol: str, number: int, answer: bool, data: bytes) -> None:
        """Add data that the device (`answer`) or the collector sent on one connection."""
        self.protocol = protocol
        turns = self.conversations.setdefault(number, [Turn()])
        if answer:
            turns[-1].answer += data
            return
        if turns[-1].answer or (protocol == "udp" and turns[-1].ask):
            turns.append(Turn())
        turns[-1].ask += data

    def write(self, path: Path, hide: Iterable[str]) -> None:
        """Write the recording as JSON, with asterisks for the texts in `hide`."""
        secrets = [text.encode() for text in hide if text]
        turns = [
            [
                {
                    "ask": _text(_stored_request(turn), secrets),
                    "answer": _text(turn.answer, secrets),
                }
                for turn in conversation
            ]
            for conversation in self.conversations.values()
        ]
        document = {"protocol": self.protocol, "conversations": turns}
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a recording from its file. Raises InvalidInput."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            turns = [
                [Turn(_bytes(turn["ask"]), _bytes(turn["answer"])) for turn in conversation]
                for conversation in document["conversations"]
            ]
            return cls(document["protocol"], dict(enumerate(turns)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise errors.InvalidInput(
                f"{path} is not a recording", cause=f"{type(error).__name__}: {error}"
            ) from None


@contextmanager
def recording(path: str | Path, address: str, port: int, hide: Iterable[str] = ()) -> Iterator[int]:
    """Relay a loopback port to the device, and write all exchanges to a file at the end.

    Yields the loopback port. Texts in `hide` (for secrets: `credential.secrets()`) are replaced by
    asterisks in requests and replies. Of an HTTP request only the first line is stored. Review the
    file before you commit it.
    """
    exchanges = Recording()
    with relayed(address, port, exchanges.hear) as relay:
        yield relay.port
    exchanges.write(Path(path), hide)


def _recorded_reply(now: bytes, then: bytes, answer: bytes) -> bytes:
    return answer


@contextmanager
def replayed(path: str | Path, adjust: Adjust = _recorded_reply) -> Iterator[int]:
    """Serve a recording on loopback, any number of times. Yields the port. Raises InvalidInput.

    `adjust` can change a reply: in a protocol with request numbers, the reply must carry the number
    of the new request.
    """
    exchanges = Recording.read(Path(path))
    both = pair()
    port = both.port
    with background() as run:
        server = run(_serve(both, exchanges, adjust))
        try:
            yield port
        finally:
            run(_close(server))
            both.datagrams.close()


async def _serve(both: Pair, exchanges: Recording, adjust: Adjust) -> asyncio.Server:
    player = _Player(exchanges, adjust)
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Datagrams(player), sock=both.datagrams)
    return await asyncio.start_server(player.connected, sock=both.listener)


async def _close(server: asyncio.Server) -> None:
    server.close()


class _Player:
    """Chooses the recorded reply to each request."""

    def __init__(self, exchanges: Recording, adjust: Adjust) -> None:
        self._conversations: Sequence[list[Turn]] = list(exchanges.conversations.values()) or [[]]
        self._turns = [turn for conversation in self._conversations for turn in conversation]
        self._adjust = adjust
        self._connections = 0
        self._played: dict[str, int] = {}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Replay the recorded connections in their order; after the last, start again."""
        turns = self._conversations[self._connections % len(self._conversations)]
        self._connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            if any(turn.http for turn in turns):
                await self._http(reader, writer)
            else:
                await self._turn_by_turn(turns, reader, writer)
        writer.close()

    async def _turn_by_turn(
        self, turns: Sequence[Turn], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        for turn in turns:
            request = await reader.readexactly(len(turn.ask)) if turn.ask else b""
            writer.write(self._adjust(request, turn.ask, turn.answer))
            await writer.drain()
        await reader.read()  # the collector closes the connection

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(_HEAD_END)
            head += await reader.readexactly(_body_length(head))
            turn = self._next(Turn(head).http)
            if turn is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nnot recorded")
            else:
                writer.write(self._adjust(head, turn.ask, turn.answer))
            await writer.drain()

    def _next(self, request: str) -> Turn | None:
        """Replay the replies to one request in their order; after the last, start again."""
        matching = [turn for turn in self._turns if turn.http == request]
        if not matching:
            return None
        played = self._played.get(request, 0)
        self._played[request] = played + 1
        return matching[played % len(matching)]

    def datagram(self, request: bytes) -> bytes:
        """Reply to a request as recorded; to an unknown request, as to one of the same length.

        Returns nothing if no recorded request has this length.
        """
        same = [turn for turn in self._turns if turn.ask == request]
        similar = same or [turn for turn in self._turns if len(turn.ask) == len(request)]
        if not similar:
            return b""
        size = str(len(request))
        played = self._played.get(size, 0)
        self._played[size] = played + 1
        turn = similar[played % len(similar)]
        return self._adjust(request, turn.ask, turn.answer)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, player: _Player) -> None:
        self._player = player

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        reply = self._player.datagram(data)
        if reply:
            self._transport.sendto(reply, addr)


def _body_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return 0


def _stored_request(turn: Turn) -> bytes:
    """Drop the headers of an HTTP request: they can hold tokens and cookies."""
    if not turn.http:
        return turn.ask
    return turn.ask.partition(b"\r\n")[0] + _HEAD_END


def _text(data: bytes, secrets: Sequence[bytes]) -> str | dict[str, str]:
    """Return the data as text if printable, otherwise as base64. A secret keeps its length."""
    for secret in secrets:
        data = data.replace(secret, b"*" * len(secret))
    with suppress(UnicodeDecodeError):
        text = data.decode()
        if all(char.isprintable() or char in "\r\n\t" for char in text):
            return text
    return {"base64": base64.b64encode(data).decode()}


def _bytes(stored: str | dict[str, str]) -> bytes:
    return stored.encode() if isinstance(stored, str) else base64.b64decode(stored["base64"])


__all__ = ["recording", "replayed"]
