"""Recorded replies: what a real device said, kept in a readable file, and said again to a collector under test.

    with recorded.recording("olt.json", "192.0.2.3", 23, hide=["secret"]) as port:      # once, at the real device
        asyncio.run(testing.collect(Olt(), "127.0.0.1", login, port=port))
    with recorded.replayed("olt.json") as port:                                         # in every test run
        asyncio.run(testing.collect(Olt(), "127.0.0.1", login, port=port))

TCP conversations are said again turn by turn, HTTP by method and path, datagrams by what was asked.
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

#: What was asked now, what was asked then, what was answered then: what to answer now.
Adjust = Callable[[bytes, bytes, bytes], bytes]

_HEAD_END = b"\r\n\r\n"


@dataclass(slots=True)
class Turn:
    """Something asked (nothing, where the device speaks first), and all that was said to it."""

    ask: bytes = b""
    answer: bytes = b""

    @property
    def http(self) -> str:
        """`GET /path`, if it is that."""
        line = self.ask.partition(b"\r\n")[0].split(b" ")
        return (
            b" ".join(line[:2]).decode("latin-1")
            if len(line) == 3 and line[2].startswith(b"HTTP/1.")
            else ""
        )


@dataclass(slots=True)
class Recording:
    protocol: str = "tcp"
    conversations: dict[int, list[Turn]] = field(default_factory=dict)

    def hear(self, protocol: str, number: int, answer: bool, data: bytes) -> None:
        self.protocol = protocol
        turns = self.conversations.setdefault(number, [Turn()])
        if answer:
            turns[-1].answer += data
            return
        if turns[-1].answer or (protocol == "udp" and turns[-1].ask):
            turns.append(Turn())
        turns[-1].ask += data

    def write(self, path: Path, hide: Iterable[str]) -> None:
        secrets = [text.encode() for text in hide if text]
        turns = [
            [
                {"ask": _text(_kept(turn), secrets), "answer": _text(turn.answer, secrets)}
                for turn in conversation
            ]
            for conversation in self.conversations.values()
        ]
        document = {"protocol": self.protocol, "conversations": turns}
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Recording:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            turns = [
                [Turn(_bytes(turn["ask"]), _bytes(turn["answer"])) for turn in conversation]
                for conversation in document["conversations"]
            ]
            return cls(document["protocol"], dict(enumerate(turns)))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise errors.InvalidInput(
                f"{path} is no recording", cause=f"{type(error).__name__}: {error}"
            ) from None


@contextmanager
def recording(path: str | Path, address: str, port: int, hide: Iterable[str] = ()) -> Iterator[int]:
    """Listen on loopback, pass everything on to the device and back, and write it down when left. Gives the port.

    Texts in `hide` (secrets: `credential.secrets()`) are replaced by asterisks, in what was asked and answered. Of HTTP
    requests only the first line is kept. Look at the file before you commit it.
    """
    heard = Recording()
    with relayed(address, port, heard.hear) as relay:
        yield relay.port
    heard.write(Path(path), hide)


def _answered_then(now: bytes, then: bytes, answer: bytes) -> bytes:
    return answer


@contextmanager
def replayed(path: str | Path, adjust: Adjust = _answered_then) -> Iterator[int]:
    """A device that says what was recorded, as often as it is asked. Gives the port. Raises InvalidInput.

    `adjust` may change an answer: where a protocol numbers its requests, the answer must carry the new number.
    """
    said = Recording.read(Path(path))
    both = pair()
    port = both.port
    with background() as run:
        server = run(_serve(both, said, adjust))
        try:
            yield port
        finally:
            run(_close(server))
            both.datagrams.close()


async def _serve(both: Pair, said: Recording, adjust: Adjust) -> asyncio.Server:
    player = _Player(said, adjust)
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: _Datagrams(player), sock=both.datagrams)
    return await asyncio.start_server(player.connected, sock=both.listener)


async def _close(server: asyncio.Server) -> None:
    server.close()


class _Player:
    def __init__(self, said: Recording, adjust: Adjust) -> None:
        self._conversations: Sequence[list[Turn]] = list(said.conversations.values()) or [[]]
        self._turns = [turn for conversation in self._conversations for turn in conversation]
        self._adjust = adjust
        self._connections = 0
        self._played: dict[str, int] = {}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """The first connection is answered as the first one was, and so on; after the last, from the start."""
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
            asked = await reader.readexactly(len(turn.ask)) if turn.ask else b""
            writer.write(self._adjust(asked, turn.ask, turn.answer))
            await writer.drain()
        await reader.read()  # it is the other side that hangs up

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(_HEAD_END)
            head += await reader.readexactly(_length(head))
            turn = self._next(Turn(head).http)
            if turn is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nnot recorded")
            else:
                writer.write(self._adjust(head, turn.ask, turn.answer))
            await writer.drain()

    def _next(self, request: str) -> Turn | None:
        """The answers to one request in their order; after the last, from the start."""
        found = [turn for turn in self._turns if turn.http == request]
        if not found:
            return None
        played = self._played.get(request, 0)
        self._played[request] = played + 1
        return found[played % len(found)]

    def datagram(self, asked: bytes) -> bytes:
        """To the same words the same answer; to others, the answer to words of that length, in their order."""
        same = [turn for turn in self._turns if turn.ask == asked]
        alike = same or [turn for turn in self._turns if len(turn.ask) == len(asked)]
        if not alike:
            return b""
        played = self._played.get(str(len(asked)), 0)
        self._played[str(len(asked))] = played + 1
        turn = alike[played % len(alike)]
        return self._adjust(asked, turn.ask, turn.answer)


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, player: _Player) -> None:
        self._player = player

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if answer := self._player.datagram(data):
            self._transport.sendto(answer, addr)


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length" and value.strip().isdigit():
            return int(value)
    return 0


def _kept(turn: Turn) -> bytes:
    """Headers of a request hold tokens and cookies."""
    return turn.ask.partition(b"\r\n")[0] + _HEAD_END if turn.http else turn.ask


def _text(data: bytes, secrets: Sequence[bytes]) -> str | dict[str, str]:
    """As text where it is one; what is hidden keeps its length."""
    for secret in secrets:
        data = data.replace(secret, b"*" * len(secret))
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    return (
        text
        if all(c.isprintable() or c in "\r\n\t" for c in text)
        else {"base64": base64.b64encode(data).decode()}
    )


def _bytes(kept: str | dict[str, str]) -> bytes:
    return kept.encode() if isinstance(kept, str) else base64.b64decode(kept["base64"])


__all__ = ["recording", "replayed"]
