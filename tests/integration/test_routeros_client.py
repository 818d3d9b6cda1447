"""The API client: a call returns all rows of one command, and no socket stays open."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import ssl
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from poller import errors
from poller.collectors.sessions import Sessions
from tests.integration.scripted_router import (
    DONE,
    LOGIN,
    PASSWORD,
    Answer,
    Script,
    Sentence,
    encode,
    healthy,
    poll_script,
    scripted,
)
from tests.unit.collectors.polls import open_files

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.api import Poll
from poller.collectors.routeros import RouterOsCollector, api_client

LOOPS = pytest.mark.parametrize("loop", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def with_router(
    answer: Answer, work: Callable[[api_client.ApiClient, Script], Awaitable[None]]
) -> None:
    async def run() -> None:
        async with scripted(answer) as script:
            router = await api_client.connect("127.0.0.1", script.port, None)
            try:
                await router.log_in("admin", PASSWORD)
                await work(router, script)
            finally:
                await router.close(politely=False)

    asyncio.run(run())


def test_a_call_sends_attributes_and_query_words_and_gives_every_row_as_text() -> None:
    async def work(router: api_client.ApiClient, script: Script) -> None:
        rows = await router.call(
            "/interface/print", "?type=ether", "?#!", **{".proplist": "name", "stats": ""}
        )
        assert [row["name"] for row in rows] == ["ether1", "zażółć", "007"]
        assert script.heard[-1] == [
            b"/interface/print",
            b"=.proplist=name",
            b"=stats=",
            b"?type=ether",
            b"?#!",
        ]
        assert await router.print("/interface", "name", "?running") == rows
        assert script.heard[-1] == [b"/interface/print", b"=.proplist=name", b"?running"]

    with_router(healthy, work)


def test_data_of_the_last_sentence_is_a_row() -> None:
    """The number of count-only comes with the last sentence."""

    async def work(router: api_client.ApiClient, script: Script) -> None:
        assert await router.call("/ip/route/print", **{"count-only": ""}) == [{"ret": "12"}]

    with_router(
        lambda sentence: [DONE] if sentence[0] == b"/login" else [[b"!done", b"=ret=12"]], work
    )


def test_a_refusal_leaves_the_session_as_it_was() -> None:
    def some(sentence: Sentence) -> list[Sentence]:
        return [[b"!trap", b"=message=busy"], DONE] if sentence[0] == b"/bad" else healthy(sentence)

    async def work(router: api_client.ApiClient, script: Script) -> None:
        with pytest.raises(api_client.CommandRefused, match="busy"):
            await router.call("/bad")
        assert len(await router.call("/interface/print")) == 3

    with_router(some, work)


def test_after_a_timeout_nothing_more_is_sent_or_read() -> None:
    """A second command on the session meets a closed connection, not the late reply."""

    async def work(router: api_client.ApiClient, script: Script) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(router.call("/late"), 0.05)
        for _ in range(2):
            with pytest.raises(errors.DeviceUnreachable):
                await router.call("/interface/print")
        assert script.heard[-1][0] == b"/late"

    with_router(lambda sentence: None if sentence[0] == b"/late" else healthy(sentence), work)


def test_a_router_that_repeated_a_tag_must_always_repeat_it() -> None:
    """An answer without a tag is some other command's, unless the router never repeats them."""

    def forgetful(sentence: Sentence) -> list[Sentence] | bytes:
        return (
            healthy(sentence)
            if sentence[0] == b"/login"
            else encode(b"!re", b"=name=x") + encode(b"!done")
        )

    async def work(router: api_client.ApiClient, script: Script) -> None:
        for problem in (
            errors.DeviceProtocolError,
            errors.DeviceUnreachable,
        ):  # the answer, and then the end
            with pytest.raises(problem):
                await router.call("/interface/print")

    with_router(forgetful, work)


def test_an_answer_one_byte_at_a_time_is_an_answer() -> None:
    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in encode(b"!done"):
                writer.write(bytes((byte,)))
                await writer.drain()
                await asyncio.sleep(0)
            await reader.read()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        router = await api_client.connect("127.0.0.1", server.sockets[0].getsockname()[1], None)
        await router.log_in("admin", PASSWORD)
        await router.close(politely=True)
        server.close()

    asyncio.run(run())


def test_one_deadline_counts_for_the_whole_poll() -> None:
    """Each step fits into the time, all steps do not: the poll ends in time, with readings."""

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            script = Script(healthy)
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while await reader.read(1):
                    await asyncio.sleep(0.25)
                    await reader.readuntil(b"\0")
                    writer.write(
                        b"".join(
                            encode(*words) for words in script.answer([b"/system/resource/print"])
                        )
                    )
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        loop = asyncio.get_running_loop()
        script, began = Script(healthy, port=server.sockets[0].getsockname()[1]), loop.time()
        result = await poll_script(script, timeout_s=0.6)
        assert 0.5 < loop.time() - began < 1.2
        assert (result.result.value, result.error_code) == ("partial", "timeout"), result.message
        server.close()

    asyncio.run(run())


@LOOPS
def test_an_idle_connection_is_watched_by_the_system(loop: Callable[..., None]) -> None:
    """Keepalive detects a dead router between polls and keeps firewall states alive."""

    async def run() -> None:
        async with scripted(healthy) as script:
            router = await api_client.connect("127.0.0.1", script.port, None)
            numbers = {int(name) for name in os.listdir("/proc/self/fd") if name.isdigit()}
            watched = [number for number in numbers if _keepalive(number, script.port)]
            assert len(watched) == 1
            await router.close(politely=True)

    loop(run())


def _keepalive(number: int, port: int) -> bool:
    """Return whether this file is our end of a connection to that port, with keepalive."""
    try:
        sock = socket.socket(fileno=os.dup(number))
    except OSError:
        return False
    with sock:
        try:
            there = sock.getpeername()[1] == port
        except (OSError, IndexError):
            return False
        return there and bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))


# Sockets


async def settled(script: Script) -> None:
    async with asyncio.timeout(5):
        while script.connections:  # noqa: ASYNC110  the other end has no event
            await asyncio.sleep(0.005)


SPEECHES: list[Answer] = [
    healthy,
    lambda sentence: None,
    lambda sentence: b"",
    lambda sentence: b"\xf8",
    lambda sentence: b"\x05!do",
    lambda sentence: [[b"!trap"], DONE],
    lambda sentence: [[b"!fatal", b"no"]],
    lambda sentence: [[b"!done"], [b"!done"]],
]


@LOOPS
def test_no_socket_is_left_whatever_the_router_sends(loop: Callable[..., None]) -> None:
    """No socket stays open after success, silence, garbage, half a reply, a trap or a fatal end."""

    async def run() -> None:
        before = -1
        for _ in range(3):
            for answer in SPEECHES:
                async with scripted(answer) as script:
                    await poll_script(script, timeout_s=0.15)
                    await settled(script)
            if before < 0:
                before = open_files()
        assert open_files() <= before

    loop(run())


@LOOPS
def test_no_socket_is_left_by_polls_that_are_cancelled(loop: Callable[..., None]) -> None:
    """A poll can be cancelled at any moment between the connection and the last row."""

    async def run() -> None:
        dice = random.Random(7)
        async with scripted(healthy) as script:
            await poll_script(script)
            await settled(script)
            before = open_files()
            for _ in range(150):
                task = asyncio.create_task(poll_script(script))
                for _ in range(dice.randrange(12)):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            await asyncio.sleep(0.02)
            await settled(script)
            assert open_files() <= before
            assert script.accepted > 20

    loop(run())


@LOOPS
@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"", "unreachable"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "protocol_error"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol_error"),
        (None, "timeout"),
    ],
    ids=["hangs up", "alert", "http", "silence"],
)
def test_no_socket_is_left_by_a_tls_handshake_that_fails(
    loop: Callable[..., None], said: bytes | None, code: str
) -> None:
    """The peer hangs up, sends an alert, uses another protocol, or stays silent."""

    async def run() -> None:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                await reader.read(1)
                if said is not None:
                    writer.write(said)
                if said == b"":
                    writer.close()
                await reader.read()
            ended.set()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        script = Script(healthy, port=server.sockets[0].getsockname()[1])
        before = open_files()
        result = await poll_script(script, timeout_s=0.4, tls=True, insecure=True)
        assert result.error_code == code, result.message
        assert said is None or "failed at the TLS handshake" in result.message
        await asyncio.wait_for(ended.wait(), 2)
        await asyncio.sleep(0.02)
        assert open_files() <= before
        server.close()

    loop(run())


@LOOPS
def test_a_worker_that_stops_leaves_no_session(loop: Callable[..., None]) -> None:
    """A stopping worker closes an idle session and one in the middle of a poll."""

    async def run() -> None:
        pool, collector = Sessions(), RouterOsCollector()

        async def polled(script: Script, device: str) -> None:
            options = collector.Options.model_validate(
                {"port": script.port, "tls": False, "families": "resource"}
            )
            deadline = asyncio.get_running_loop().time() + 5
            asked = Poll(1, device, "127.0.0.1", options, LOGIN, deadline, {}, pool)
            async for _ in collector.collect(asked):
                pass

        silent: Answer = lambda sentence: [DONE] if sentence[0] == b"/login" else None  # noqa: E731
        async with scripted(healthy) as good, scripted(silent) as mute:
            await polled(good, "good")
            task = asyncio.create_task(polled(mute, "mute"))
            while len(mute.heard) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            assert (good.connections, mute.connections) == (1, 1)
            await pool.close()
            await settled(good)
            await settled(mute)
            await asyncio.gather(task, return_exceptions=True)

    loop(run())


def test_both_ends_close_a_tls_session() -> None:
    """Both sides close a good session; the client does not wait for a peer that does not close."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")

    async def run() -> None:
        async with scripted(healthy, context) as script:
            began = asyncio.get_running_loop().time()
            result = await poll_script(script, tls=True, insecure=True)
            assert result.result.value == "ok", result.message
            await settled(script)
            assert asyncio.get_running_loop().time() - began < 3

    asyncio.run(run())
