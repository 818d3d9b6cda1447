"""Collectors for a small line protocol: good ones, and one for each promise that can be broken."""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from poller.collectors import api
from poller.collectors.credentials import Login
from poller.testing import conformance
from poller.testing.background import background

LOGIN = Login(username="mon", password="correct-horse")
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextmanager
def device() -> Iterator[conformance.Device]:
    """A device that responds `welcome` or `denied` to `login USER PASSWORD`, and a number to
    `read`.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            while line := await reader.readline():
                known = {
                    f"login mon {LOGIN.password.get_secret_value()}": "welcome",
                    "read": "21.5",
                }
                writer.write(
                    known.get(line.decode(errors="replace").strip(), "denied").encode() + b"\n"
                )

    with background() as run:
        server = run(asyncio.start_server(answer, "127.0.0.1", 0))
        yield conformance.Device("127.0.0.1", port=server.sockets[0].getsockname()[1])
        server.close()


class Good:
    name = "good"
    api_version: Any = 1
    credentials = (Login,)
    #: Mapped to errors of the device.
    expected: tuple[type[Exception], ...] = (OSError, ValueError)

    class Options(api.Options):
        port: Annotated[int, Field(ge=1, le=65535, description="TCP port")] = 2323

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        try:
            async with self.connected(poll) as streams:
                await self.log_in(poll, streams)
                value = float(await self.ask(streams, "read"))
                for reading in self.readings(value):
                    yield reading
        except self.expected as error:
            raise api.DeviceUnreachable(f"{poll.address}: {type(error).__name__}") from None

    def readings(self, value: float) -> list[Any]:
        return [
            api.Reading("good_celsius", value, {"slot": "1"}),
            api.Reading("good_octets_total", 7, {}, api.Kind.COUNTER, 64),
            api.Reading("good_info", 1, {"model": "x"}, api.Kind.INFO),
        ]

    @asynccontextmanager
    async def connected(self, poll: api.Poll) -> AsyncIterator[Streams]:
        reader, writer = await asyncio.open_connection(poll.address, poll.options.port)
        with closing(writer):
            yield reader, writer

    async def log_in(self, poll: api.Poll, streams: Streams) -> None:
        assert isinstance(poll.credential, Login)
        password = poll.credential.password.get_secret_value()
        if await self.ask(streams, f"login {poll.credential.username} {password}") != "welcome":
            raise api.DeviceAuthFailed(self.refusal(password))

    def refusal(self, password: str) -> str:
        return "it refused the login"

    async def ask(self, streams: Streams, command: str) -> str:
        reader, writer = streams
        writer.write(command.encode() + b"\n")
        line = await reader.readline()
        if not line:
            raise ConnectionResetError("it hung up")
        return line.decode().strip()


class Keeper(Good):
    """A good collector with a session."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        value = await poll.session(self, self.read)
        for reading in self.readings(value):
            yield reading

    async def read(self, streams: Streams) -> float:
        try:
            return float(await self.ask(streams, "read"))
        except OSError as error:
            raise self.lost(error) from None
        except ValueError:
            raise api.DeviceProtocolError("it said what is no number") from None

    def lost(self, error: OSError) -> api.DeviceError:
        return api.SessionLost("it had ended the session")

    def session_key(self, poll: api.Poll) -> Hashable:
        return poll.options.port

    async def open_session(self, poll: api.Poll) -> Streams:
        try:
            streams = await asyncio.open_connection(poll.address, poll.options.port)
        except OSError as error:
            raise api.DeviceUnreachable(str(error)) from None
        try:
            await self.log_in(poll, streams)
        except BaseException as error:
            streams[1].close()
            if isinstance(error, OSError | ValueError):
                raise api.DeviceUnreachable("no login") from None
            raise
        return streams

    async def close_session(self, session: Streams, *, politely: bool) -> None:
        session[1].close()


class Threaded(Good):
    """A good collector in a thread."""

    blocking = True

    def collect(self, poll: api.Poll) -> Iterator[Any]:  # type: ignore[override]
        assert isinstance(poll.credential, Login)
        login = f"login {poll.credential.username} {poll.credential.password.get_secret_value()}"
        try:
            with socket.create_connection(
                (poll.address, poll.options.port), timeout=self.patience_s(poll)
            ) as line:
                line.settimeout(self.patience_s(poll))
                with line.makefile("rw") as file:
                    if self.said(file, login) != "welcome":
                        raise api.DeviceAuthFailed("it refused the login")
                    yield from self.readings(float(self.said(file, "read")))
        except (OSError, ValueError) as error:
            raise api.DeviceUnreachable(f"{poll.address}: {type(error).__name__}") from None

    def patience_s(self, poll: api.Poll) -> float | None:
        return max(0.01, poll.deadline - time.monotonic() - 0.05)

    def said(self, file: Any, command: str) -> str:
        print(command, file=file, flush=True)
        return str(file.readline()).strip()


class Finder(Good):
    """A good collector with discovery."""

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        yield api.Suggestion({"port": poll.options.port}, "it answers")


GOOD = (Good, Keeper, Threaded, Finder)


class OfAnotherTime(Good):
    api_version = (7, 9)


class Undescribed(Good):
    class Options(Good.Options):
        depth: int = 3


class WithoutDefault(Good):
    class Options(Good.Options):
        depth: Annotated[int, Field(ge=1, description="How deep")] = 0


class AnythingGoes(Good):
    class Options(Good.Options):
        model_config = ConfigDict(extra="ignore")


class Mute(Good):
    def readings(self, value: float) -> list[Any]:
        return []


class OddName(Good):
    def readings(self, value: float) -> list[Any]:
        return [api.Reading("good-celsius", value)]


class OddLabel(Good):
    def readings(self, value: float) -> list[Any]:
        return [api.Reading("good_celsius", value, {"slot no": "1"})]


class Twice(Good):
    def readings(self, value: float) -> list[Any]:
        return [api.Reading("good_celsius", value), api.Reading("good_celsius", value + 1)]


class TwoKinds(Good):
    def readings(self, value: float) -> list[Any]:
        return [
            api.Reading("good", value, {"a": "1"}),
            api.Reading("good", value, {"a": "2"}, api.Kind.COUNTER),
        ]


class Boundless(Good):
    def readings(self, value: float) -> list[Any]:
        return [api.Reading("good_celsius", float("inf"))]


class Backwards(Good):
    def readings(self, value: float) -> list[Any]:
        return [api.Reading("good_octets_total", -1, {}, api.Kind.COUNTER)]


class Stubborn(Good):
    """A collector that ignores its cancellation."""

    async def ask(self, streams: Streams, command: str) -> str:
        try:
            return await super().ask(streams, command)
        except asyncio.CancelledError:
            if command != "read" and not streams[0]._buffer:  # type: ignore[attr-defined]
                await asyncio.sleep(2)
            raise


class Standstill(Good):
    """A collector that sleeps where it should wait."""

    async def ask(self, streams: Streams, command: str) -> str:
        reader, writer = streams
        writer.write(command.encode() + b"\n")
        try:
            async with asyncio.timeout(0.1):
                line = await reader.readline()
        except TimeoutError:
            time.sleep(0.8)  # noqa: ASYNC251  that is the fault
            raise
        if not line:
            raise ConnectionResetError("it hung up")
        return line.decode().strip()


class Satisfied(Good):
    """A collector that takes silence for a response."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        try:
            async with asyncio.timeout(0.1):
                async for item in super().collect(poll):
                    yield item
        except TimeoutError:
            return


class Litterer(Good):
    """A collector that starts a task and abandons it on cancellation."""

    async def ask(self, streams: Streams, command: str) -> str:
        heartbeat = asyncio.create_task(asyncio.sleep(60))
        try:
            return await super().ask(streams, command)
        except asyncio.CancelledError:
            heartbeat = asyncio.create_task(asyncio.sleep(0))
            raise
        finally:
            heartbeat.cancel()


class Naive(Good):
    """A collector without handling for an absent device."""

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        with socket.socket() as probe:
            probe.setblocking(False)
            with suppress(ConnectionResetError):
                await asyncio.get_running_loop().sock_connect(
                    probe, (poll.address, poll.options.port)
                )
        async for item in super().collect(poll):
            yield item


class Fragile(Good):
    """A collector without handling for a connection that ends."""

    async def ask(self, streams: Streams, command: str) -> str:
        streams[1].write(command.encode() + b"\n")
        try:
            return (await streams[0].readuntil(b"\n")).decode().strip()
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            if not getattr(error, "partial", b""):
                raise LookupError("no answer") from None
            raise ConnectionResetError from None


class Credulous(Good):
    """A collector that decodes every reply as text."""

    expected = (OSError,)

    async def ask(self, streams: Streams, command: str) -> str:
        streams[1].write(command.encode() + b"\n")
        said = await streams[0].read(4096)
        if not said:
            raise ConnectionResetError("it hung up")
        return said.decode().strip()


class Hoarder(Good):
    """A collector that never closes a connection."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    async def log_in(self, poll: api.Poll, streams: Streams) -> None:
        await super().log_in(poll, streams)
        self._kept.append(socket.create_connection((poll.address, poll.options.port)))


class Selfish(Good):
    """A collector that stores the data of a poll in itself."""

    def __init__(self) -> None:
        self._address = ""

    async def collect(self, poll: api.Poll) -> AsyncIterator[Any]:
        if self._address:
            raise RuntimeError("two at a time")
        self._address = poll.address
        try:
            async for item in super().collect(poll):
                yield item
        finally:
            self._address = ""


class Gossip(Good):
    def refusal(self, password: str) -> str:
        return f"it refused {password}"


class Diarist(Good):
    async def ask(self, streams: Streams, command: str) -> str:
        logging.getLogger("zoo").debug("sent %s", command)
        return await super().ask(streams, command)


class Forgetful(Keeper):
    """A collector that reports an ended session as a failure of the device."""

    def lost(self, error: OSError) -> api.DeviceError:
        return api.DeviceUnreachable("it hung up")


class Fickle(Keeper):
    """A collector whose session keys never repeat."""

    def session_key(self, poll: api.Poll) -> Hashable:
        return random.random()


class Abandoned(Threaded):
    """A collector that waits for ever, in a thread."""

    def patience_s(self, poll: api.Poll) -> float | None:
        return None


class Dreamer(Finder):
    """A collector whose discovery suggests options that it would refuse."""

    async def discover(self, poll: api.Poll) -> AsyncIterator[api.Suggestion]:
        yield api.Suggestion({"port": "any"}, "it might")


#: Each plugin with the check it fails, and a word of the message for its author.
BROKEN: tuple[tuple[Any, set[str], str], ...] = (
    (OfAnotherTime, {"contract"}, "it needs collector API 7 to 9"),
    (Undescribed, {"options_described"}, "what depth means"),
    (WithoutDefault, {"options_stored"}, "depth"),
    (AnythingGoes, {"unknown_option"}, "derive Options from api.Options"),
    (Mute, {"reads_the_device"}, "no reading"),
    (OddName, {"readings"}, 'the metric name "good-celsius"'),
    (OddLabel, {"readings"}, 'the label name "slot no"'),
    (Twice, {"readings"}, "came 2 times"),
    (TwoKinds, {"readings"}, "has one kind"),
    (Boundless, {"readings"}, "infinite"),
    (Backwards, {"readings"}, "counters begin at 0"),
    (Stubborn, {"deadline", "cancellation"}, "CancelledError"),
    (Standstill, {"deadline"}, "blocking = True"),
    (Satisfied, {"deadline"}, "counts as read"),
    (Litterer, {"cancellation"}, "cancel what you started"),
    (Naive, {"refused"}, "catch ConnectionRefusedError"),
    (Fragile, {"reset"}, "catch LookupError"),
    (Credulous, {"garbage"}, "catch "),
    (Hoarder, {"leaks"}, "files or sockets open"),
    (Selfish, {"side_by_side"}, "RuntimeError"),
    (Gossip, {"secrets"}, "the secret is in an error"),
    (Diarist, {"secrets"}, "the secret is in a log line"),
    (Forgetful, {"sessions"}, "api.SessionLost"),
    (Fickle, {"sessions"}, "session_key"),
    (Abandoned, {"deadline"}, "its thread goes on"),
    (Dreamer, {"discovery"}, "options that it would refuse"),
)
