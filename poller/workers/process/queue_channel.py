"""kombu's connection to Redis, mended in two places. All roles use it (`app.py`).

kombu reads entries without a check: an exception there ends the consumer or the whole worker. And
it closes a channel only in part when Redis is away: the sockets stay open, and the channel stays in
memory until the process ends.
"""

from __future__ import annotations

from queue import Empty
from typing import Any

from celery.app import amqp
from kombu import connection
from kombu.transport import redis as transport
from kombu.transport import virtual
from kombu.utils import json

from poller.workers.process import queue_entries

# kombu has annotations only in part; these have none.
_Channel: Any = transport.Channel
_VirtualChannel: Any = virtual.Channel
_Connection: Any = connection.Connection
_loads: Any = json.loads


#: The end of the name of a queue for replies of remote control, such as `celery inspect ping`. Only
#: the command that asked takes them, and they are messages of no task.
_REPLIES = ".pidbox"


class Refused(Exception):
    """Raised below kombu for an entry that was set aside."""


class QueueChannel(_Channel):  # type: ignore[misc]
    def close(self) -> None:
        """Close everything, also while Redis is away.

        kombu deletes queues first, and stops if that fails.
        """
        try:
            super().close()
        except self.connection_errors:
            self._disconnect_pools()
            self._close_clients()
            _VirtualChannel.close(self)

    def _create_client(self, asynchronous: bool = False) -> Any:
        client = super()._create_client(asynchronous)
        client.set_response_callback("BRPOP", self._check_answer)
        return client

    def _check_answer(self, answer: Any, **_: Any) -> Any:
        """Pass on the answer to BRPOP: a list and its entry, or nothing."""
        if answer:
            key, entry = answer
            self._check(key.decode(errors="replace"), entry)
        return answer

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)
        except Refused:
            raise Empty from None

    def _get(self, queue: str) -> Any:
        """Return the next message of a queue, the urgent ones first. Raises Empty."""
        with self.conn_or_acquire() as client:
            for priority in self.priority_steps:
                key = self._q_for_pri(queue, priority)
                while entry := client.rpop(key):
                    reason = _problem(queue, entry)
                    if not reason:
                        return _loads(entry.decode())
                    self._refuse(queue, entry, reason)
        raise Empty

    def _deliver_fanout_message(self, message: Any, exchange: str) -> Any:
        """Pass on a message of remote control."""
        is_message = isinstance(message, dict) and isinstance(message.get("properties"), dict)
        if not is_message or "delivery_tag" not in message["properties"]:
            queue_entries.refusals.refuse(exchange, str(message), "it has no properties")
            raise Empty
        return super()._deliver_fanout_message(message, exchange)

    def _check(self, key: str, entry: bytes) -> None:
        queue = key.rsplit(self.sep, 1)[0]
        reason = _problem(queue, entry)
        if reason:
            self._refuse(queue, entry, reason)
            raise Refused(reason)

    def _refuse(self, queue: str, entry: bytes, reason: str) -> None:
        beginning = entry[: queue_entries.KEPT_CHARACTERS]
        queue_entries.refusals.refuse(queue, beginning.decode(errors="replace"), reason)


def _problem(queue: str, entry: bytes) -> str:
    return "" if queue.endswith(_REPLIES) else queue_entries.problem(entry)


class QueueConnection(_Connection):  # type: ignore[misc]
    def create_transport(self) -> Any:
        made = super().create_transport()
        if isinstance(made, transport.Transport):
            made.Channel = QueueChannel
        return made


class Amqp(amqp.AMQP):  # type: ignore[misc]
    """Has the Celery app make these connections."""

    Connection = QueueConnection
