"""What a worker takes for a Celery message."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from poller.tasks.job import plan_jobs, run_job
from poller.tasks.poll import poll
from poller.workers.process import queue_entries

ABSENT = object()


def message(**changes: Any) -> bytes:
    """An entry as our beat publishes it, with changes: `headers__id=5` changes one header."""
    arguments = (["token", [1, 2]], {}, {"callbacks": None, "chain": None})
    made: dict[str, Any] = {
        "body": json.dumps(arguments),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "task": poll.name,
            "id": "a-b",
            "retries": 0,
            "timelimit": [None, None],
            "eta": None,
            "expires": None,
        },
        "properties": {
            "correlation_id": "a-b",
            "delivery_info": {"exchange": "", "routing_key": "poll.snmp"},
            "priority": 5,
            "body_encoding": "utf-8",
            "delivery_tag": "t",
        },
    }
    for path, value in changes.items():
        *folders, name = path.split("__")
        place = made
        for folder in folders:
            place = place[folder]
        name = name.replace("content_", "content-")
        if value is ABSENT:
            del place[name]
        else:
            place[name] = value
    return json.dumps(made).encode()


NOT_BASE64 = message(body="%%%", properties__body_encoding="base64")
NO_TEXT = message(body=base64.b64encode(b"\xff\xfe").decode(), properties__body_encoding="base64")

REFUSED = {
    "text": b"not json",
    "bytes": b"\xff\xfe\x00",
    "list": b"[]",
    "number": b"5",
    "many digits": b"1" * 5_000,
    "NaN": b"NaN",
    "null": b"null",
    "string": b'"x"',
    "deep list": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "empty object": b"{}",
    "no properties": message(properties=ABSENT),
    "list of properties": message(properties=[]),
    "no delivery tag": message(properties__delivery_tag=ABSENT),
    "list as delivery tag": message(properties__delivery_tag=[1]),
    "list as delivery info": message(properties__delivery_info=[]),
    "no headers": message(headers=ABSENT),
    "text as headers": message(headers="x"),
    "no task": message(headers__task=ABSENT),
    "list as task": message(headers__task=[]),
    "no id": message(headers__id=ABSENT),
    "list as id": message(headers__id=[1]),
    "list as eta": message(headers__eta=[]),
    "object as expiry": message(headers__expires={}),
    "text as time limit": message(headers__timelimit="x"),
    "one time limit": message(headers__timelimit=[1]),
    "number as stamps": message(headers__stamped_headers=5),
    "compressed": message(headers__compression="application/x-bz2"),
    "pickle": message(content_type="application/x-python-serialize"),
    "no content type": message(content_type=None),
    "other text encoding": message(content_encoding="nonsense"),
    "other body encoding": message(properties__body_encoding="rot13"),
    "not base64": NOT_BASE64,
    "no text in base64": NO_TEXT,
    "no body": message(body=ABSENT),
    "empty body": message(body=""),
    "object as body": message(body={"a": 1}),
    "number in the body": message(body="5"),
    "two parts in the body": message(body="[[], {}]"),
    "deep body": message(body="[" * 100_000),
    "unknown type of kombu": message(body={"__type__": "nonsense", "__value__": 1}),
    "broken type of kombu": message(body={"__type__": "uuid", "__value__": [1]}),
    "broken time of kombu": message(headers__eta={"__type__": "datetime", "__value__": "x"}),
    "poll without targets": message(body='[["token"], {}, {}]'),
    "poll with a number as token": message(body="[[1, [2]], {}, {}]"),
    "planning without names": message(headers__task=plan_jobs.name, body="[[], {}, {}]"),
    "planning of numbers": message(headers__task=plan_jobs.name, body="[[[1]], {}, {}]"),
    "job without plans": message(
        headers__task=run_job.name,
        body='[["prune", "global", "global", [], 1, "schedule"], {}, {}]',
    ),
    "job by keywords": message(headers__task=run_job.name, body='[[], {"job": "prune"}, {}]'),
}


@pytest.mark.parametrize("entry", REFUSED.values(), ids=REFUSED.keys())
def test_an_entry_that_celery_cannot_use_is_named(entry: bytes) -> None:
    """Most of these ended the worker that took them."""
    assert queue_entries.problem(entry).startswith("it")


@pytest.mark.parametrize(
    "entry",
    [
        message(),
        message(body='[["token", [1], 2], {}, {}]'),
        message(headers__task="their.task", body="[[], {}, {}]"),
        message(headers__task=plan_jobs.name, body='[[["prune"]], {}, {}]'),
        message(
            headers__task=run_job.name,
            body='[["prune", "global", "global", [1], 1, "schedule"], {}, {}]',
        ),
        message(body={"__type__": "bytes", "__value__": '[["token", [1]], {}, {}]'}),
        message(headers__expires=4.5, headers__eta="2026-11-17T00:00:00"),
        message(
            body=base64.b64encode(b'[["t", [1]], {}, {}]').decode(),
            properties__body_encoding="base64",
        ),
    ],
    ids=["poll", "retry", "another task", "planning", "job", "given back", "times", "base64"],
)
def test_a_message_is_accepted(entry: bytes) -> None:
    """Also one that Celery's own command line sends, in base64, and one that a stopping worker gave
    back to its queue: kombu writes its body in a type of its own.
    """
    assert queue_entries.problem(entry) == ""
