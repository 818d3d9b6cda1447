"""A RouterOS API server whose replies come from a test. Shares no code with the client."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from poller.collectors.credentials import Login
from poller.domain.failures.outcome import Outcome
from tests.unit.collectors.polls import polled

PASSWORD = "pässwörd-s3cret"
LOGIN = Login(username="admin", password=PASSWORD)
DONE = [b"!done"]

Sentence = list[bytes]
#: Sentences, which get the tag of the command; or bytes as they are; or nothing. `b""` hangs up.
Answer = Callable[[Sentence], list[Sentence] | bytes | None]


def length(n: int) -> bytes:
    return bytes((n,)) if n < 0x80 else (n | 0x8000).to_bytes(2, "big")


def encode(*words: bytes) -> bytes:
    return b"".join(length(len(word)) + word for word in words) + b"\0"


async def read_sentence(reader: asyncio.StreamReader) -> Sentence:
    words = []
    while True:
        first = (await reader.readexactly(1))[0]
        size = first if first < 0x80 else (first & 0x3F) << 8 | (await reader.readexactly(1))[0]
        if not size:
            return words
        words.append(await reader.readexactly(size))


@dataclass
class Script:
    """The replies of the server, the commands it received, and its open connections."""

    answer: Answer
    heard: list[Sentence] = field(default_factory=list)
    port: int = 0
    connections: int = 0
    accepted: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.accepted += 1
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while await self._answer(await read_sentence(reader), writer):
                    pass
        finally:
            self.connections -= 1
            writer.close()

    async def _answer(self, sentence: Sentence, writer: asyncio.StreamWriter) -> bool:
        tags = [word for word in sentence if word.startswith(b".tag=")]
        self.heard.append([word for word in sentence if word not in tags])
        said = self.answer(self.heard[-1])
        if isinstance(said, list):
            said = b"".join(
                encode(*words, *(tags if words and words[0] != b"!fatal" else [])) for words in said
            )
        writer.write(said or b"")
        return said != b""


@contextlib.asynccontextmanager
async def scripted(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Script]:
    """Start a listening server; at the end all its connections are cut."""
    script, served = Script(answer), dict[asyncio.StreamWriter, asyncio.Task[None] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served[writer] = asyncio.current_task()
        await script.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    script.port = server.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        server.close()
        for writer in served:
            writer.transport.abort()
        await asyncio.gather(*filter(None, served.values()))


def healthy(sentence: Sentence) -> list[Sentence]:
    if sentence[0] == b"/system/resource/print":
        return [
            [b"!re", b"=uptime=1d2h", b"=cpu-load=7", b"=version=7.18 (stable)", b"=board-name=X"],
            DONE,
        ]
    if sentence[0] == b"/interface/print":
        rows = [
            [b"!re", b"=name=" + name, b"=rx-byte=123", b"=running=true"]
            for name in (b"ether1", "zażółć".encode())
        ]
        return [
            *rows,
            [b"!re", b"=name=007", b"=comment=caf\xe9", b"=rx-byte=18446744073709551615"],
            DONE,
        ]
    return [DONE]


async def poll_script(script: Script, timeout_s: float = 5, **options: Any) -> Outcome:
    from poller.collectors.routeros import RouterOsCollector

    options = {"families": ["resource", "interfaces"], "tls": False, **options}
    drained = await polled(
        RouterOsCollector(), "127.0.0.1", LOGIN, timeout_s=timeout_s, port=script.port, **options
    )
    return drained.outcome


def poll(
    answer: Answer, timeout_s: float = 5, served: ssl.SSLContext | None = None, **options: Any
) -> tuple[Outcome, list[Sentence]]:
    """Poll one router once on its own loop; return the outcome and the sentences that the router
    received.
    """

    async def run() -> tuple[Outcome, list[Sentence]]:
        async with scripted(answer, served) as script:
            return await poll_script(script, timeout_s, **options), script.heard

    return asyncio.run(run())
