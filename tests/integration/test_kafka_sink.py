"""The `kafka` sink against the mock brokers of librdkafka, read back by a consumer."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pydantic
import pytest
from confluent_kafka import Message

from poller import errors
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sinks.api import Sample, Stores
from poller.sinks.bus.kafka.kafka_options import KafkaOptions
from poller.sinks.bus.kafka.kafka_sink import KafkaSink
from poller.testing import sink_conformance
from tests.integration import store_contents, store_storms
from tests.integration.store_servers import MockKafka
from tests.integration.store_storms import Drops

AT_MS = 1_790_000_000_123


@pytest.fixture(scope="session")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockKafka]:
    server = MockKafka(tmp_path_factory.mktemp("kafka"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)


def sink(brokers: MockKafka, topic: str, drops: Drops | None = None, **options: Any) -> KafkaSink:
    stores = Stores(None, None, None, "bus", drops or Drops())
    chosen = {"servers": [brokers.broker], "topic": topic, **options}
    return KafkaSink(stores, KafkaOptions(**chosen))


def messages(brokers: MockKafka, topic: str) -> list[Message]:
    return store_contents.kafka_messages(brokers, topic)


def test_a_message_has_key_value_header_and_time_of_its_poll(
    brokers: MockKafka, topic: str
) -> None:
    """The key is the target's id, so that all polls of a target are in one partition, in order."""
    made = sink(brokers, topic)
    polls = [store_storms.poll(target, AT_MS + at) for at in range(5) for target in range(8)]
    made.write(polls)
    made.close()

    found = messages(brokers, topic)
    assert len(found) == len(polls)
    first = next(message for message in found if message.key() == b"3")
    body = json.loads(first.value() or b"")
    assert first.headers() == [("poller-id", f"3-{AT_MS}".encode())]
    assert first.timestamp()[1] == AT_MS
    assert (body["id"], body["device"], body["site"]) == (f"3-{AT_MS}", "r3", "ams")
    assert body["data"][0] == ["octets_total", {"port": "1"}, "counter", float(AT_MS)]

    by_target = defaultdict(list)
    for message in found:
        by_target[message.key()].append((message.partition(), message.timestamp()[1]))
    for places in by_target.values():
        assert len({partition for partition, _ in places}) == 1
        assert [at_ms for _, at_ms in places] == [AT_MS + at for at in range(5)]
    assert len({message.partition() for message in found}) > 1


def test_kafka_has_every_poll_once_through_freezes(
    brokers: MockKafka, topic: str, tmp_path: Path
) -> None:
    """Polls that ran out of time are not sent a second time: the producer still has them."""
    made = sink(brokers, topic, timeout_s=0.3)
    written = store_storms.ride_out(
        made, tmp_path, brokers, store_storms.frozen, store_storms.frozen
    )
    bodies = [json.loads(message.value() or b"") for message in messages(brokers, topic)]
    assert Counter((body["target"], body["at_ms"]) for body in bodies) == Counter(written)


def test_a_poll_larger_than_a_message_is_split(
    brokers: MockKafka, topic: str, drops: Drops
) -> None:
    """The limit of a message costs only a reading that is larger than that."""
    readings = [Reading("m", float(port), {"port": str(port)}) for port in range(1000)]
    readings.append(Reading("huge", 1.0, {"text": "x" * 20_000}))
    target = store_storms.poll(1, AT_MS).target
    made = sink(brokers, topic, drops, max_bytes=10_000)
    made.write([Sample(target, AT_MS, ReadingSet.of(readings))])
    made.close()
    found = messages(brokers, topic)
    assert len(found) > 2
    assert sum(len(json.loads(message.value() or b"")["data"]) for message in found) == 1000
    assert (drops.samples, "max_bytes" in drops.reasons[0]) == (1, True)


def test_brokers_that_are_away_are_named(brokers: MockKafka, free_port: int) -> None:
    """Polls wait in the spool while no broker answers."""
    made = sink(brokers, "any", servers=[f"127.0.0.1:{free_port}"], timeout_s=0.5)
    with pytest.raises(errors.StoreUnavailable, match=f"127.0.0.1:{free_port}"):
        made.write([store_storms.poll(1, AT_MS)])
    made.close()


def test_check_names_the_topic(brokers: MockKafka, topic: str) -> None:
    """`poller sinks test` shows brokers and partitions."""
    made = sink(brokers, topic)
    made.write([store_storms.poll(1, AT_MS)])
    assert made.check() == f"2 brokers, topic {topic}: 4 partitions"
    made.close()
    made.close()


def test_login_and_tls_become_properties_of_librdkafka(tmp_path: Path) -> None:
    """What is asked of librdkafka, which the mock brokers cannot check."""
    (tmp_path / "word").write_text("open\n")
    options = KafkaOptions(
        servers=["k1:9093", "k2:9093"],
        tls=True,
        insecure=True,
        username="me",
        password_file=tmp_path / "word",
    )
    properties = options.properties("bus")
    expected = {
        "bootstrap.servers": "k1:9093,k2:9093",
        "acks": "all",
        "enable.idempotence": True,
        "message.timeout.ms": 0,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "open",
        "enable.ssl.certificate.verification": False,
    }
    assert {name: properties[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"servers": ["kafka://k1:9092"]}, "host:port"),
        ({"servers": ["k1"]}, "the port is missing"),
        ({"servers": ["k1:0"]}, "from 1 to 65535"),
        ({"servers": ["k1,k2:9092"]}, "letters, digits"),
        ({"username": "me"}, "belong together"),
        ({"ca_file": "/ca.pem"}, "tls = true"),
        ({"topic": "a b"}, "characters"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    """A mistake is said at start."""
    with pytest.raises(pydantic.ValidationError, match=text):
        KafkaOptions(**options)


class WithBrokers:
    """Brokers that stop and go on: a relay is no use, because brokers name their own addresses."""

    server: MockKafka
    topic = ""

    @pytest.fixture(autouse=True)
    def _server(self, brokers: MockKafka, request: pytest.FixtureRequest) -> Iterator[None]:
        WithBrokers.server = brokers
        WithBrokers.topic = f"conformance-{request.node.name}"
        yield
        brokers.thaw()

    @classmethod
    def options(cls) -> dict[str, Any]:
        return {"servers": [cls.server.broker], "topic": cls.topic, "timeout_s": 3}

    @classmethod
    def stored(cls) -> list[Message]:
        return messages(cls.server, cls.topic)

    def down(self) -> None:
        self.server.freeze()

    slow = cut_request = lose_answer = down

    def recover(self) -> None:
        self.server.thaw()


class TestConformance(
    WithBrokers,
    sink_conformance.suite(  # type: ignore[misc]
        KafkaSink,
        lambda: nullcontext(Stores(None, None, None)),
        WithBrokers.stored,
        options=WithBrokers.options,
        faults=WithBrokers,
    ),
):
    """A repetition after an acknowledged write is a second message; one after a fault is not.

    The mock brokers know one fault, to stop, and neither refuse nor ask to wait.
    """

    test_repeats = test_slow = test_half_written = test_lost_answer = None
    test_busy = test_refusing = None
