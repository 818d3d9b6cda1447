"""RouterOS sessions: one login for many polls, and no reply is taken for another command's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import uvloop

from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Login
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.scheduling.session_limits import Limits, Rules
from poller.sim import fleet
from poller.sim.routeros.routeros_server import RouterOsServer
from tests.integration.scripted_router import (
    DONE,
    Sentence,
    encode,
    healthy,
    read_sentence,
    scripted,
)
from tests.unit.collectors.polls import by_series

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector

LOGIN = Login(username=fleet.USERNAME, password=fleet.PASSWORD)
COLLECTOR = RouterOsCollector()


async def poll(
    pool: Sessions, address: str, port: int, timeout_s: float = 5, **more: Any
) -> Outcome:
    """Run one poll as a worker does."""
    chosen = {
        "port": port,
        "tls": False,
        "families": "resource,interfaces",
        **more.get("options", {}),
    }
    options = COLLECTOR.Options.model_validate(chosen)
    deadline = asyncio.get_running_loop().time() + timeout_s
    credential = more.get("credential", LOGIN)
    asked = Poll(more.get("target", 1), address, address, options, credential, deadline, {}, pool)
    return await poll_runner.run_poll(COLLECTOR, asked)


@contextlib.asynccontextmanager
async def simulated(count: int) -> AsyncIterator[tuple[RouterOsServer, int]]:
    server = RouterOsServer(fleet.devices(count, snmp_share=0, faulty_share=0))
    try:
        yield server, await server.open(0)
    finally:
        server.close()


def test_a_steady_router_costs_one_login() -> None:
    """Three routers with two targets each, ten polls: three logins, no open connection."""

    async def run() -> None:
        async with simulated(3) as (server, port):
            pool = Sessions()
            for _ in range(10):
                polls = [
                    poll(pool, address, port, options={"families": family})
                    for address in server.routers
                    for family in ("resource", "interfaces")
                ]
                assert {(await each).error_code for each in asyncio.as_completed(polls)} == {""}
            assert server.logins == dict.fromkeys(server.routers, 1)
            await pool.close()
            async with asyncio.timeout(5):
                while server.connections:  # noqa: ASYNC110  the other end has no event
                    await asyncio.sleep(0.005)

    asyncio.run(run())


def test_sessions_are_replaced_at_their_age_and_for_another_secret() -> None:
    async def run() -> None:
        async with simulated(1) as (server, port):
            [address] = server.routers
            pool = Sessions(Rules(Limits(age_s=0)))
            assert [(await poll(pool, address, port)).result for _ in range(3)] == [Result.OK] * 3
            assert server.logins[address] == 3
            kept = Sessions()
            await poll(kept, address, port)
            wrong = await poll(
                kept, address, port, credential=Login(username=fleet.USERNAME, password="rotated")
            )
            assert wrong.error_code == "auth_failed", (
                "it was polled on the session of the old password"
            )
            await kept.close()

    asyncio.run(run())


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as a machine does that no longer knows it."""
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()


class Moody:
    """A router with one resource row and one interface.

    Both rows carry the number of their request. The mood decides whether the reply is complete,
    late, half, or a hang-up or reset.
    """

    def __init__(self, seed: int, moods: str, repeats_tags: bool = True) -> None:
        self._repeats_tags = repeats_tags
        self.requests = 0
        self.logins = 0
        self.seen: Counter[str] = Counter()
        self._dice = random.Random(seed)
        self._moods = moods
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                await self._answer(await read_sentence(reader), writer)

    async def _answer(self, sentence: Sentence, writer: asyncio.StreamWriter) -> None:
        if sentence[0] == b"/login":
            self.logins += 1
            writer.write(encode(b"!done"))
            return
        self.requests += 1
        number = str(self.requests).encode()
        row = b"=uptime=" + number + b"s" if b"resource" in sentence[0] else b"=rx-byte=" + number
        tag = [word for word in sentence if word.startswith(b".tag=") and self._repeats_tags]
        answer = encode(b"!re", b"=name=x", row, *tag) + encode(b"!done", *tag)
        mood = self._dice.choice(self._moods)
        self.seen[mood] += 1
        if mood == "l":  # late: the poll has ended by then
            await asyncio.sleep(0.15)
        writer.write(answer[: len(answer) // 2] if mood == "h" else answer if mood != "n" else b"")
        if mood in "ch":
            writer.close()
        elif mood == "r":
            writer.transport.abort()
        elif mood == "b":  # boots: the connection, idle by then, gets a reset
            asyncio.get_running_loop().call_later(0.003, reset, writer)
        elif mood == "f":
            writer.write(encode(b"!fatal", b"idle for too long"))
            writer.close()
        elif mood == "d":  # says it twice
            writer.write(answer)

    async def end(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def moody(
    seed: int, moods: str, repeats_tags: bool = True
) -> AsyncIterator[tuple[Moody, int]]:
    router = Moody(seed, moods, repeats_tags)
    server = await asyncio.start_server(router.serve, "127.0.0.1", 0)
    try:
        yield router, server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await router.end()


def values(result: Outcome) -> list[float]:
    """Return the numbers of the requests that were answered."""
    found = by_series(result) if result.readings else {}
    wanted = ("routeros_system_uptime", "routeros_interface_rx_byte")
    return [value for name in wanted for (metric, _), value in found.items() if metric == name]


@pytest.mark.parametrize(("seed", "tags"), [(0, True), (1, False), (2, False)])
def test_no_value_comes_from_a_command_of_an_earlier_poll(seed: int, tags: bool) -> None:
    """Replies are late, half, doubled or missing, connections are lost, polls are cancelled.

    One router repeats the tags of commands, the other does not.
    """

    async def run() -> None:
        dice = random.Random(seed)
        async with moody(seed, "oooooolnhcrd", tags) as (router, port):
            pool, good = Sessions(), 0
            for _ in range(60):
                before = router.requests
                task = asyncio.create_task(poll(pool, "127.0.0.1", port, timeout_s=0.12))
                if dice.random() < 0.15:
                    await asyncio.sleep(dice.random() * 0.003)
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
                    continue
                result = await task
                found = values(result)
                assert all(number > before for number in found), (
                    "an answer to a command of an earlier poll"
                )
                assert found == sorted(found), "an answer to another command"
                good += result.result is Result.OK
            assert good > 10
            assert router.seen.keys() == set("olnhcrd")
            assert router.logins < router.requests
            await pool.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    "mood",
    ["c", "b", "f", "d"],
    ids=["it hangs up", "it resets", "it says good-bye", "it speaks out of turn"],
)
@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_a_router_that_ended_an_idle_session_is_polled_all_the_same(
    mood: str, loop: Callable[..., None]
) -> None:
    """The router hangs up after every reply: each poll logs in again, and none fails."""

    async def run() -> None:
        async with moody(0, mood) as (router, port):
            pool = Sessions()
            for number in range(1, 6):
                result = await poll(pool, "127.0.0.1", port, options={"families": "resource"})
                assert result.result is Result.OK, result.message
                assert values(result) == [number]
                await asyncio.sleep(0.01)  # it is idle
            assert router.logins == 5
            await pool.close()

    loop(run())


def test_a_router_that_hangs_up_in_its_reply_is_not_retried() -> None:
    """A poll that has read something fails with the connection, and the next poll logs in anew."""

    async def run() -> None:
        async with moody(0, "oh") as (router, port):
            pool = Sessions()
            results = [
                await poll(pool, "127.0.0.1", port, options={"families": "resource"})
                for _ in range(12)
            ]
            assert router.requests == 12
            assert {result.error_code for result in results} == {"", "unreachable"}
            assert (
                Counter(result.error_code for result in results)["unreachable"] == router.seen["h"]
            )
            await pool.close()

    asyncio.run(run())


def test_a_refused_command_does_not_cost_the_session() -> None:
    def no_resources(sentence: Sentence) -> list[Sentence]:
        refused = [[b"!trap", b"=message=failure: try again"], DONE]
        return refused if sentence[0] == b"/system/resource/print" else healthy(sentence)

    async def run() -> None:
        async with scripted(no_resources) as router:
            pool = Sessions()
            results = [await poll(pool, "127.0.0.1", router.port) for _ in range(4)]
            assert {(result.result, result.error_code) for result in results} == {
                (Result.PARTIAL, "protocol_error")
            }
            assert router.accepted == 1
            await pool.close()

    asyncio.run(run())


def test_a_rotated_password_is_used_at_the_next_poll() -> None:
    """A new password replaces a session of the old one that still works."""

    async def run() -> None:
        async with scripted(healthy) as router:
            pool = Sessions()
            for password in ("old", "old", "new", "new"):
                login = Login(username="admin", password=password)
                assert (
                    await poll(pool, "127.0.0.1", router.port, credential=login)
                ).result is Result.OK
            logins = [sentence[2] for sentence in router.heard if sentence[0] == b"/login"]
            assert logins == [b"=password=old", b"=password=new"]
            await pool.close()

    asyncio.run(run())


def test_targets_of_one_device_take_turns_on_its_session() -> None:
    """Two commands never run at the same time: a small router has few threads for them."""
    under_way, most = 0, 0

    async def run() -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal under_way, most
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    sentence = await read_sentence(reader)
                    under_way += 1
                    most = max(most, under_way)
                    await asyncio.sleep(0.005)
                    under_way -= 1
                    writer.write(b"".join(encode(*words) for words in healthy(sentence)))
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        pool, port = Sessions(), server.sockets[0].getsockname()[1]
        results = await asyncio.gather(*(poll(pool, "127.0.0.1", port, target=n) for n in range(8)))
        assert {result.result for result in results} == {Result.OK}
        assert (pool.opened, most) == (1, 1)
        await pool.close()
        server.close()

    asyncio.run(run())
