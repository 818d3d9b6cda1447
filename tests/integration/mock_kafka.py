"""Kafka brokers as a program: the mock cluster of librdkafka, which speaks Kafka's protocol by TCP.

No Kafka is packaged for Debian. The mock has partitions, acks, producer ids and sequence numbers;
it has no disk, no TLS, no login, and no limits of topics.
Usage: python mock_kafka.py FILE   writes host:port of a broker to FILE, and serves until its end.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from confluent_kafka import Producer


def main(file: Path) -> None:
    host = Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 2})
    broker = next(iter(host.list_topics(timeout=10).brokers.values()))
    file.write_text(f"{broker.host}:{broker.port}")
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
