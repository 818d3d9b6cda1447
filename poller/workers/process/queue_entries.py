"""Entries of Celery's queues that are no Celery messages: set aside and counted.

Any program may write to the lists in Redis, and such an entry would end the worker that takes it.
`problem` says what is wrong with an entry; `Refusals` keeps the newest refused ones.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from kombu.utils import json as kombu_json

from poller import bootstrap, errors, event_publisher
from poller.domain.failures.outcome import clean
from poller.domain.jobs import run_message
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.observability.report_quota import Quota
from poller.state.redis_client import store_errors

log = logs.get(__name__)

_loads: Any = kombu_json.loads  # as kombu reads the entry: it has types of its own

#: The counter of all workers, among the totals of the board.
REFUSED_TOTAL = "queue_entries_refused"
#: Refused entries that are kept, and characters of each.
KEPT = 100
KEPT_CHARACTERS = 2_000
#: Lines and events in one minute, for different problems.
LINES_PER_MINUTE = 10

#: Headers that Celery uses before the task runs, with the types it can use. None is always fine.
_HEADERS: dict[str, type | tuple[type, ...]] = {
    "eta": str,
    "expires": (str, int, float),
    "timelimit": list,
    "stamped_headers": list,
    "retries": int,
}


def problem(entry: bytes) -> str:
    """Say why an entry is no Celery message; "" for a message."""
    try:
        message = _loads(entry)
    except Exception:  # noqa: BLE001  door: any program wrote this, and kombu's types parse it
        return "it is not JSON"
    return _problem(message)


def _problem(message: Any) -> str:
    if not isinstance(message, dict):
        return "it is no JSON object"
    properties = message.get("properties")
    if not isinstance(properties, dict):
        return "it has no properties"
    if not isinstance(properties.get("delivery_tag"), str):
        return "its properties have no delivery_tag"
    if not isinstance(properties.get("delivery_info"), dict):
        return "its properties have no delivery_info"
    return _header_problem(message.get("headers")) or _body_problem(message, properties)


def _header_problem(headers: Any) -> str:
    if not isinstance(headers, dict):
        return "it has no headers"
    for name in ("task", "id"):
        if not isinstance(headers.get(name), str):
            return f"its headers have no {name}"
    for name, kind in _HEADERS.items():
        value = headers.get(name)
        if value is not None and not isinstance(value, kind):
            return f"its header {name} has a wrong type"
    if len(headers.get("timelimit") or (None, None)) != 2:
        return "its header timelimit has a wrong length"
    return "it is compressed" if headers.get("compression") else ""


def _body_problem(message: dict[str, Any], properties: dict[str, Any]) -> str:
    form = message.get("content-type"), message.get("content-encoding")
    if form != ("application/json", "utf-8"):
        return "its body is not of the type application/json in utf-8"
    body = message.get("body")  # bytes, if kombu gave the message back to its queue
    encoding = properties.get("body_encoding")
    if not isinstance(body, str | bytes) or encoding not in (None, "utf-8", "base64"):
        return "its body cannot be read"
    try:
        text = base64.b64decode(body, validate=True) if encoding == "base64" else body
        parts = json.loads(text)
    except (binascii.Error, ValueError, RecursionError):
        return "its body cannot be read"
    if not isinstance(parts, list) or [type(part) for part in parts] != [list, dict, dict]:
        return "its body is not arguments, keywords and options"
    return _argument_problem(message["headers"]["task"], parts[0])


def _argument_problem(task: str, arguments: list[Any]) -> str:
    if task == "poller.poll" and not _is_batch(arguments):
        return "it is a poll without token and targets"
    if task == "poller.plan_jobs" and not _is_list_of_names(arguments):
        return "it is a planning without names of jobs"
    return run_message.fault(arguments) if task == "poller.run_job" else ""


def _is_batch(arguments: list[Any]) -> bool:
    """Whether a poll has a token, target ids and perhaps its attempt."""
    kinds = [type(argument) for argument in arguments]
    return kinds in ([str, list], [str, list, int])


def _is_list_of_names(arguments: list[Any]) -> bool:
    """Whether a planning has one list of names."""
    if len(arguments) != 1 or not isinstance(arguments[0], list):
        return False
    return all(isinstance(name, str) for name in arguments[0])


class Refusals:
    """Sets refused entries aside: the newest in a list, all in a counter, an event a minute."""

    def __init__(self) -> None:
        self._lines = Quota(LINES_PER_MINUTE)

    def refuse(self, queue: str, entry: str, reason: str) -> None:
        """Set one entry aside. Never raises: without Redis the entry is only logged."""
        services = bootstrap.services()
        kept = {
            "at_ms": event_publisher.now_ms(),
            "queue": queue,
            "reason": reason,
            "entry": services.redactor.text(entry[:KEPT_CHARACTERS]),
        }
        unsaid = self._lines.admit((queue, reason))
        try:
            pipe = services.redis.pipeline(transaction=False)
            pipe.lpush(services.keys.set_aside, json.dumps(kept))
            pipe.ltrim(services.keys.set_aside, 0, KEPT - 1)
            with store_errors(services.redis):
                pipe.execute()
            services.board.count({REFUSED_TOTAL: 1})
        except errors.StoreError as error:
            log.error("queue_entry_not_kept", queue=queue, reason=reason, error=str(error))
        if unsaid is not None:
            event_publisher.emit(services, [_event(kept, unsaid)])


def _event(kept: dict[str, Any], unsaid: int) -> Event:
    more = f" ({unsaid} more in the last minute)" if unsaid else ""
    text = f"an entry of the queue {kept['queue']} was set aside: {kept['reason']}{more}"
    data = {"queue": kept["queue"], "reason": kept["reason"], "begins": clean(kept["entry"][:80])}
    return Event(kept["at_ms"], Kind.QUEUE_ENTRY_REFUSED, text, data=data)


refusals = Refusals()
