"""The `kafka` sink: a message for every poll, with the target's id as key, acknowledged by all.

Messages without an ack stay with the idempotent producer, which repeats them in order. When the
writer brings the same polls again, the sink waits for these messages and sends no others: a poll
is stored once for as long as the process lives.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from poller import errors
from poller.domain.failures import outcome
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.bus import poll_messages
from poller.sinks.bus.kafka.kafka_options import KafkaOptions
from poller.sinks.bus.poll_messages import MessageMaker, PollMessage

ID_HEADER = "poller-id"
#: Errors of a message that no repetition changes.
_REFUSED = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
    }
)
_CLOSE_S = 1.0
#: Reports beyond this number are of polls that the writer gave up.
_MAX_REPORTS = 100_000


class KafkaSink:
    name: ClassVar[str] = "kafka"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[KafkaOptions]] = KafkaOptions
    write_polls: ClassVar[int] = 512

    def __init__(self, stores: Stores, options: KafkaOptions) -> None:
        self._name = stores.name
        self._options = options
        self._dropped = stores.dropped
        self._maker = MessageMaker()
        self._producer: Producer | None = None  # made by the thread that writes
        self._reports: dict[str, _Report] = {}  # of messages that the producer has or had
        self._left_out: list[tuple[int, str]] = []  # counted when the polls of a call are stored
        self._fault = ""  # the newest error of the connection
        self._is_fatal = False  # the producer gave up
        options.properties(stores.name)

    def write(self, samples: Sequence[Sample]) -> None:
        """Send the polls and wait for all acks; after an outage, wait for those still without."""
        if not samples:
            return
        if len(self._reports) > _MAX_REPORTS:
            waiting = {each: report for each, report in self._reports.items() if not report.is_done}
            self._reports = waiting
        until_mono = time.monotonic() + self._options.timeout_s
        producer = self._made_producer()
        self._left_out.clear()
        ids = [each for sample in samples for each in self._send(producer, sample, until_mono)]
        producer.flush(max(0.0, until_mono - time.monotonic()))
        self._judge(ids)
        for readings, reason in self._left_out:
            self._dropped(readings, reason)

    def check(self) -> str:
        """Say how many brokers answer, and what the topic is."""
        producer = self._made_producer()
        topic = self._options.topic
        try:
            if "{" in topic:
                known = producer.list_topics(timeout=self._options.timeout_s)
                return f"{len(known.brokers)} brokers"
            known = producer.list_topics(topic, timeout=self._options.timeout_s)
        except KafkaException as error:
            raise self._away(_text(error.args[0])) from None
        found = known.topics[topic]
        if found.error is not None:
            return f"{len(known.brokers)} brokers, topic {topic}: {_text(found.error)}"
        return f"{len(known.brokers)} brokers, topic {topic}: {len(found.partitions)} partitions"

    def close(self) -> None:
        """End the producer. Messages without an ack are still in the spool of the writer."""
        producer, self._producer = self._producer, None
        self._reports.clear()
        if producer is not None:
            producer.purge()
            producer.flush(_CLOSE_S)

    def _made_producer(self) -> Producer:
        if self._producer is None:
            properties = self._options.properties(self._name)
            logger = logging.getLogger(__name__)
            self._producer = Producer({**properties, "error_cb": self._on_error}, logger=logger)
        return self._producer

    def _send(self, producer: Producer, sample: Sample, until_mono: float) -> list[str]:
        """Give the messages of a poll to the producer, unless it has them. Returns their ids."""
        made = self._maker.messages(sample, self._options.max_bytes)
        if made.left_out:
            reason = f"{sample.target.name}: a reading is larger than max_bytes"
            self._left_out.append((made.left_out, reason))
        topic = poll_messages.place(self._options.topic, sample.target)
        for message in made.messages:
            if message.id not in self._reports:
                self._produce(producer, topic, sample, message, until_mono)
        return [message.id for message in made.messages]

    def _produce(
        self,
        producer: Producer,
        topic: str,
        sample: Sample,
        message: PollMessage,
        until_mono: float,
    ) -> None:
        report = _Report()
        while True:
            try:
                producer.produce(
                    topic,
                    key=str(sample.target.id),
                    value=message.payload,
                    headers=[(ID_HEADER, message.id)],
                    timestamp=sample.at_ms,
                    on_delivery=partial(_on_delivery, report),
                )
                self._reports[message.id] = report
                return
            except BufferError:  # the queue of the producer is full
                if time.monotonic() >= until_mono:
                    raise self._away("no ack in time") from None
                producer.poll(0.05)
            except KafkaException as error:
                raise self._away(_text(error.args[0])) from None

    def _judge(self, ids: Sequence[str]) -> None:
        """Forget messages that are stored or refused for good; raise for any other."""
        failure = ""
        for each in ids:
            report = self._reports[each]
            if not report.is_done:
                failure = failure or self._fault or "no ack in time"
            elif report.error is not None and report.error.code() not in _REFUSED:
                failure = failure or _text(report.error)
                del self._reports[each]
        if failure:
            if self._is_fatal:
                self._restart()
            raise self._away(failure)

        for each in ids:
            error = self._reports.pop(each).error
            if error is not None:
                self._dropped(1, f"{each}: {_text(error)}")
        self._fault = ""

    def _restart(self) -> None:
        """Replace a producer that gave up. Its messages are sent again, perhaps twice."""
        self.close()
        self._is_fatal = False

    def _on_error(self, error: KafkaError) -> None:
        self._fault = _text(error)
        self._is_fatal = self._is_fatal or error.fatal()

    def _away(self, cause: str) -> errors.StoreUnavailable:
        servers = ", ".join(self._options.servers)
        return errors.StoreUnavailable(
            f"{self._name}: Kafka at {servers} did not store all polls",
            cause=outcome.clean(cause),
            hint="check servers, login and TLS of the sink, and whether the topic exists",
        )


class _Report:
    """The delivery of a message: not known yet, stored, or an error."""

    __slots__ = ("error", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self.error: KafkaError | None = None


def _on_delivery(report: _Report, error: KafkaError | None, _message: Message) -> None:
    report.is_done = True
    report.error = error


def _text(error: Any) -> str:
    """Return the text of a KafkaError."""
    return str(error.str()) if isinstance(error, KafkaError) else str(error)
