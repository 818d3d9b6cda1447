"""The messages of a poll on a bus: one JSON object, or several where a poll is too large for one.

The id of a message is the same when a poll is written again, so that a bus or its reader can tell
a repetition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from string import Formatter
from typing import NamedTuple

from poller.domain.inventory.poll_target import PollTarget
from poller.sinks.api import Sample
from poller.sinks.bus.poll_json import PollJson

#: Room for the fields of a part beside its entries.
_PART_BYTES = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_FACTS = ("site", "device", "target", "collector", "id")


class PollMessage(NamedTuple):
    """One message. `id` is made of target and time, and of the part and the number of parts."""

    id: str
    payload: bytes


class PollMessages(NamedTuple):
    """The messages of a poll, and the readings that are too large for any message."""

    messages: list[PollMessage]
    left_out: int


class MessageMaker:
    """Not safe for threads: the writer of the sink uses it."""

    def __init__(self) -> None:
        self._json = PollJson()

    def messages(self, sample: Sample, max_bytes: int) -> PollMessages:
        """Return the messages of a poll, each of at most `max_bytes` bytes."""
        poll_id = f"{sample.target.id}-{sample.at_ms}"
        head = _head(sample, poll_id)
        entries = self._json.entries(sample)
        payload = f'{head}"data":[{",".join(entries)}]}}'.encode()
        if len(payload) <= max_bytes:
            return PollMessages([PollMessage(poll_id, payload)], 0)

        room = max_bytes - len(head.encode()) - _PART_BYTES
        encoded = [entry.encode() for entry in entries]
        fitting = [entry for entry in encoded if len(entry) <= room]
        parts = list(_parts(fitting, room))
        messages = [
            PollMessage(
                f"{poll_id}-{number}/{len(parts)}",
                f'{head}"part":{number},"parts":{len(parts)},"data":['.encode() + part + b"]}",
            )
            for number, part in enumerate(parts, 1)
        ]
        return PollMessages(messages, len(encoded) - len(fitting))


def _head(sample: Sample, poll_id: str) -> str:
    """Return the facts of a poll as the open beginning of a JSON object."""
    target = sample.target
    facts = {
        "id": poll_id,
        "target": target.id,
        "name": target.name,
        "device": target.device,
        "address": target.address,
        "site": target.site,
        "tags": list(target.tags),
        "collector": target.collector,
        "at_ms": sample.at_ms,
        # As text: the number has 64 bits, and many readers of JSON have 53.
        "series": str(sample.readings.series.id),
    }
    return json.dumps(facts, ensure_ascii=False, separators=(",", ":"))[:-1] + ","


def _parts(entries: list[bytes], room: int) -> Iterator[bytes]:
    """Join entries to lists of at most `room` bytes."""
    part: list[bytes] = []
    size = 0
    for entry in entries:
        if part and size + len(entry) + 1 > room:
            yield b",".join(part)
            part, size = [], 0
        part.append(entry)
        size += len(entry) + 1
    if part:
        yield b",".join(part)


def check_template(template: str) -> str:
    """Return a template of subjects or topics. Raises ValueError for one that makes none."""
    for literal, fact, form, conversion in Formatter().parse(template):
        if _UNSAFE.sub("", literal.replace(".", "")) != literal.replace(".", ""):
            raise ValueError(f'"{literal}" has characters other than letters, digits, _, - and .')
        if fact is not None and (fact not in _FACTS or form or conversion):
            places = ", ".join(f"{{{each}}}" for each in _FACTS)
            raise ValueError(f'"{{{fact}}}" is none of {places}')
    if not all(template.split(".")):
        raise ValueError("it begins or ends with a dot, or has two in a row")
    return template


def place(template: str, target: PollTarget) -> str:
    """Return the subject or topic of a target. Facts are made safe; an empty one is `_`."""
    facts: Mapping[str, str] = {
        "site": target.site,
        "device": target.device,
        "target": target.name,
        "collector": target.collector,
        "id": str(target.id),
    }
    safe = {fact: _UNSAFE.sub("_", text) or "_" for fact, text in facts.items()}
    return template.format_map(safe)


def wildcard(template: str) -> str:
    """Return the NATS subject that all subjects of a template match."""
    tokens = template.split(".")
    return ".".join("*" if "{" in token else token for token in tokens)
