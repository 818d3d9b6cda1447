"""Any bytes of a web server become a response or a DeviceError; the body is limited."""

from __future__ import annotations

import asyncio
import random

import h11
import pytest

from poller.collectors import tls
from poller.collectors.http import http_request
from poller.collectors.http.exchange_record import Exchange
from poller.collectors.http.http_request import Request
from poller.collectors.http.urls import Url

ANSWERS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/html\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.0 302 Found\r\nLocation: http://a/\r\n\r\nbody",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
    b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nabc",
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\0",
    b"9" * 30,
    b": ",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 3\r\n",
]
MAX_BODY = 20


async def read(data: bytes, method: str = "GET") -> Exchange:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    state = h11.Connection(h11.CLIENT, max_incomplete_event_size=http_request.HEAD_BYTES)
    state.send(
        h11.Request(method=method, target="/", headers=[("Host", "a"), ("Connection", "close")])
    )
    state.send(h11.EndOfMessage())
    exchange = Exchange()
    request = Request(method, MAX_BODY, tls.ANY)
    await http_request._ResponseReader(state, reader, request, exchange).read()
    return exchange


def mutated(dice: random.Random) -> bytes:
    data = bytearray(dice.choice(ANSWERS))
    for _ in range(dice.randrange(1, 6)):
        at = dice.randrange(len(data) + 1)
        deed = dice.randrange(4)
        if deed == 0:
            data[at:at] = dice.randbytes(dice.randrange(1, 8))
        elif deed == 1:
            del data[at : at + dice.randrange(1, 20)]
        else:
            data[at:at] = (
                dice.choice(PIECES) if deed == 2 else dice.choice(ANSWERS)[dice.randrange(20) :]
            )
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "status", "body", "truncated"),
    [
        (ANSWERS[0], 200, b"hello", False),
        (ANSWERS[1], 200, b"hello", False),
        (ANSWERS[2], 302, b"body", False),
        (ANSWERS[3], 204, b"", False),
        (ANSWERS[2] + b"x" * 100, 302, b"body" + b"x" * 16, True),
    ],
)
def test_answers_are_read(data: bytes, status: int, body: bytes, truncated: bool) -> None:
    """With a length, in chunks, until the end; as much as was asked for."""
    seen = asyncio.run(read(data))
    assert (seen.status, bytes(seen.body), seen.truncated, seen.complete) == (
        status,
        body,
        truncated,
        True,
    )


@pytest.mark.parametrize("seed", range(4))
def test_mutated_answers_are_read_or_refused_in_our_words(seed: int) -> None:
    """Four times five hundred of them, always the same."""
    dice = random.Random(seed)

    async def all_of_them() -> list[BaseException]:
        refused: list[BaseException] = []
        for _ in range(500):
            data, method = mutated(dice), dice.choice(["GET", "HEAD"])
            try:
                assert len((await read(data, method)).body) <= MAX_BODY
            except http_request.EXPECTED as error:
                refused.append(error)
        return refused

    refused = asyncio.run(all_of_them())
    assert 0 < len(refused) < 500
    assert all(
        http_request.translate(error, Url("http", "a", 80, "/"), Exchange()).message
        for error in refused
    )
