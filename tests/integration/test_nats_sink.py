"""The `nats` sink against nats-server with JetStream."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nats
import nkeys
import pytest
from nats.aio.msg import Msg
from nats.js.api import StreamConfig

from poller import errors
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sinks.api import Sample, Stores
from poller.sinks.bus.nats.nats_options import NatsOptions
from poller.sinks.bus.nats.nats_sink import NatsSink
from poller.testing import sink_conformance
from poller.testing.store_relay import StoreRelay
from tests.integration import store_storms, web_servers
from tests.integration.store_servers import NatsServer
from tests.integration.store_storms import Drops

AT_MS = 1_790_000_000_123


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def server(running: NatsServer) -> Iterator[NatsServer]:
    """The server, without the streams of other tests."""
    yield running
    asyncio.run(_delete_streams(running.url))


async def _delete_streams(url: str) -> None:
    client = await nats.connect(url)
    jetstream = client.jetstream()
    for stream in await jetstream.streams_info():
        await jetstream.delete_stream(str(stream.config.name))
    await client.close()


def messages(url: str, subject: str = "poller.readings.>") -> list[Msg]:
    """Return all stored messages of a subject, oldest first."""

    async def read() -> list[Msg]:
        client = await nats.connect(url)
        jetstream = client.jetstream()
        stream = await jetstream.find_stream_name_by_subject(subject)
        number = (await jetstream.stream_info(stream)).state.messages
        reader = await jetstream.subscribe(subject, ordered_consumer=True)
        found = [await reader.next_msg(timeout=5) for _ in range(number)]
        await client.close()
        return found

    return asyncio.run(read())


def sink(server: NatsServer, drops: Drops | None = None, **options: Any) -> NatsSink:
    stores = Stores(None, None, None, "bus", drops or Drops())
    chosen = {"servers": [server.url], "create_stream": True, **options}
    return NatsSink(stores, NatsOptions(**chosen))


def test_jetstream_has_every_poll_once_through_kills_freezes_and_restarts(
    server: NatsServer, tmp_path: Path
) -> None:
    """JetStream has one message for each poll, in the order of each target."""
    written = store_storms.ride_out(
        sink(server, timeout_s=0.5),
        tmp_path,
        server,
        store_storms.killed,
        store_storms.frozen,
        store_storms.restarted,
    )
    bodies = [json.loads(message.data) for message in messages(server.url)]
    stored = [(body["target"], body["at_ms"]) for body in bodies]
    assert Counter(stored) == Counter(written)
    for target in range(store_storms.TARGETS):
        times = [at_ms for each, at_ms in stored if each == target]
        assert times == sorted(times)


def test_a_repeated_poll_is_stored_once_under_its_subject(server: NatsServer) -> None:
    """The id of a message is that of its poll, and the subject names site, device, collector."""
    made = sink(server)
    for _ in range(2):
        made.write([store_storms.poll(3, AT_MS)])
    made.close()
    (message,) = messages(server.url)
    assert message.subject == "poller.readings.ams.r3.storm"
    assert message.headers is not None
    assert message.headers["Nats-Msg-Id"] == f"bus/{message.subject}/3-{AT_MS}"
    assert json.loads(message.data)["data"][1] == ["load", {"port": "1"}, "gauge", 0.75]


def test_a_poll_larger_than_a_message_is_split(server: NatsServer, drops: Drops) -> None:
    """Nothing is lost to the server's max_payload but a reading that is larger than that."""
    readings = [Reading("m", float(port), {"port": f"p{port}" * 10}) for port in range(2000)]
    readings.append(Reading("huge", 1.0, {"text": "x" * 70_000}))
    target = store_storms.poll(1, AT_MS).target
    made = sink(server, drops)
    made.write([Sample(target, AT_MS, ReadingSet.of(readings))])
    made.close()
    bodies = [json.loads(message.data) for message in messages(server.url)]
    assert sum(len(body["data"]) for body in bodies) == 2000
    assert (drops.samples, "max_payload" in drops.reasons[0]) == (1, True)


def test_without_a_stream_polls_wait(server: NatsServer) -> None:
    """Plain NATS would lose messages, so that a subject without a stream is an outage."""
    made = sink(server, create_stream=False)
    with pytest.raises(errors.StoreUnavailable, match="no stream has this subject") as raised:
        made.write([store_storms.poll(1, AT_MS)])
    assert "create_stream" in raised.value.hint
    assert "no stream has the subject" in made.check()
    made.close()


def test_a_stream_is_created_only_once_and_only_if_missing(server: NatsServer) -> None:
    """The operator's stream is left as it is; a created one tells repetitions for the window."""
    made = sink(server, duplicate_window_s=77, stream="mine")
    assert made.check().endswith("stream mine, 0 messages, duplicate window 77 s")
    made.close()
    again = sink(server, duplicate_window_s=99, stream="mine")
    assert "duplicate window 77 s" in again.check()
    again.close()


def test_what_a_stream_refuses_waits_or_is_counted(server: NatsServer, drops: Drops) -> None:
    """A full stream is an outage; a message that the stream's limit excludes is left out."""

    async def create(name: str, **limits: Any) -> None:
        client = await nats.connect(server.url)
        config = StreamConfig(name=name, subjects=[f"{name}.>"], **limits)
        await client.jetstream().add_stream(config)
        await client.close()

    asyncio.run(create("small", max_msg_size=100))
    asyncio.run(create("full", max_msgs=1, discard="new"))
    small = sink(server, drops, create_stream=False, subject="small.{device}")
    small.write([store_storms.poll(1, AT_MS)])
    small.close()
    assert (drops.samples, "small.r1" in drops.reasons[0]) == (1, True)

    full = sink(server, create_stream=False, subject="full.{device}")
    with pytest.raises(errors.StoreUnavailable, match="maximum messages"):
        full.write([store_storms.poll(1, AT_MS), store_storms.poll(2, AT_MS)])
    full.close()


def test_logins_of_a_server_are_taken_from_files(tmp_path: Path) -> None:
    """A user with a password and one with an nkey get in over TLS, a wrong password does not."""
    identity = web_servers.identity(tmp_path)
    pair = nkeys.from_seed(b"SUAEL6RG2L5HSCJHIUYT4TGCRBS2KNFKJZPM2S5HZ7JRK3DAZHRRBVKYZY")
    server = NatsServer(tmp_path / "nats")
    server.more = (
        f'tls {{ cert_file: "{identity.ca_file}", '
        f'key_file: "{identity.ca_file.with_suffix(".key")}" }}\n'
        f'authorization {{ users: [{{user: me, password: "open"}}, '
        f"{{nkey: {pair.public_key.decode()}}}] }}"
    )
    for name, text in (("good", "open"), ("bad", "shut"), ("seed", pair.seed.decode())):
        (tmp_path / name).write_text(text)
    server.start()
    try:
        tls = {"servers": [server.url.replace("nats:", "tls:")], "ca_file": identity.ca_file}
        for login in (
            {"username": "me", "password_file": tmp_path / "good"},
            {"nkey_file": tmp_path / "seed"},
        ):
            made = sink(server, **tls, **login)
            made.write([store_storms.poll(1, AT_MS)])
            made.close()
        refused = sink(server, **tls, username="me", password_file=tmp_path / "bad")
        with pytest.raises(errors.StoreUnavailable, match="Authorization"):
            refused.write([store_storms.poll(1, AT_MS)])
        refused.close()
    finally:
        server.stop()


def test_a_server_that_is_away_is_named_and_another_one_is_tried(
    server: NatsServer, free_port: int
) -> None:
    """One living server of several is enough."""
    dead = f"nats://127.0.0.1:{free_port}"
    made = sink(server, servers=[dead])
    with pytest.raises(errors.StoreUnavailable, match=f"{dead}.*Connection refused"):
        made.write([store_storms.poll(1, AT_MS)])
    made.close()
    several = sink(server, servers=[dead, server.url])
    several.write([store_storms.poll(1, AT_MS)])
    several.close()


def test_close_ends_the_thread(server: NatsServer) -> None:
    """A closed sink leaves no thread behind."""
    made = sink(server)
    made.write([store_storms.poll(1, AT_MS)])
    made.close()
    made.close()
    assert "nats-bus" not in {thread.name for thread in threading.enumerate()}


class WithServer:
    """A relay to the server of the tests, which fails on demand; and the messages there."""

    url = ""
    relay: StoreRelay

    @pytest.fixture(autouse=True)
    def _server(self, server: NatsServer) -> None:
        WithServer.url = server.url

    @classmethod
    @contextmanager
    def stores(cls) -> Iterator[Stores]:
        port = urlsplit(cls.url).port or 4222
        with StoreRelay(port) as cls.relay:
            yield Stores(None, None, None)

    @classmethod
    def options(cls) -> dict[str, Any]:
        servers = [f"nats://127.0.0.1:{cls.relay.port}"]
        return {"servers": servers, "create_stream": True, "timeout_s": 1.5}


class TestConformance(
    WithServer,
    sink_conformance.suite(  # type: ignore[misc]
        NatsSink,
        WithServer.stores,
        lambda: messages(WithServer.url),
        options=WithServer.options,
        faults=lambda: WithServer.relay,
    ),
):
    """JetStream tells a repetition by its id. A relay neither refuses nor asks to wait."""

    test_busy = test_refusing = None
