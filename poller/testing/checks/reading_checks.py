"""What it reads of a device that is well."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from poller.collectors.api import Discovers, Kind, Poll, Reading, ReadingSet, Suggestion
from poller.domain.failures.outcome import Result
from poller.testing.subject import AMPLE_S, Failed, Inapplicable, Seen, Subject

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


async def reads_the_device(subject: Subject) -> None:
    """The device of the test is read: everything of it, and twice, with the memory of the first poll and without."""
    memory: dict[str, object] = {}
    for attempt in ("at its first poll", "at its second poll, with the memory of the first"):
        seen = await subject.poll(memory=memory)
        if not seen.is_ok:
            raise Failed(f"{attempt} the device of the test was not read: {seen.told}")
        if seen.outcome.readings is None:
            raise Failed(f"{attempt} it yielded no reading of the device of the test")


async def readings(subject: Subject) -> None:
    """Readings are well-formed: names, labels, kinds and values that every sink can store."""
    seen = await subject.poll()
    if seen.outcome.result not in (Result.OK, Result.PARTIAL):
        raise Inapplicable("it read nothing")
    found = list(_single(seen))
    for reading in found:
        _check_words(reading)
        _check_value(reading)
    _check_together(found)


def _single(seen: Seen) -> Iterator[Reading]:
    for item in seen.ear.items:
        if isinstance(item, Reading):
            yield item
        elif isinstance(item, ReadingSet):
            yield from item


def _check_words(reading: Reading) -> None:
    if not _NAME.fullmatch(reading.name):
        raise Failed(
            f'the metric name "{reading.name}" is none: letters, digits and _ only, no digit first'
        )
    for label in reading.labels:
        if not _LABEL.fullmatch(label) or label.startswith("__"):
            raise Failed(
                f'{reading.name}: the label name "{label}" is none: letters, digits and _, no digit and no __ first'
            )


def _check_value(reading: Reading) -> None:
    """NaN says of a gauge that it is not known now; nothing else is allowed to be no number."""
    value = float(reading.value)
    if math.isinf(value):
        raise Failed(f"{reading.name} is infinite: leave a reading out when there is no value")
    if reading.kind is Kind.COUNTER and not value >= 0:
        raise Failed(
            f"{reading.name} is a counter with the value {value:g}: counters begin at 0 and grow"
        )
    if reading.kind is Kind.INFO and value != 1:
        raise Failed(
            f"{reading.name} is an info with the value {value:g}: an info is 1, and its labels matter"
        )


def _check_together(found: Iterable[Reading]) -> None:
    kinds: dict[str, Kind] = {}
    times: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
    for reading in found:
        if kinds.setdefault(reading.name, reading.kind) is not reading.kind:
            raise Failed(
                f"{reading.name} is a {kinds[reading.name]} and a {reading.kind}: a metric has one kind"
            )
        times[reading.name, tuple(sorted(reading.labels.items()))] += 1
    for (name, labels), number in times.items():
        if number > 1:
            raise Failed(
                f"{name} {dict(labels)} came {number} times in one poll, and only the last is kept: "
                "a label must tell them apart"
            )


async def discovery(subject: Subject) -> None:
    """What it suggests for the device of the test are targets that could be saved, each with a reason."""
    collector: Any = subject.make()
    if not isinstance(subject.make(), Discovers):
        raise Inapplicable("it does not discover")
    deadline = asyncio.get_running_loop().time() + AMPLE_S
    device = subject.device
    poll = Poll(1, "device", device.address, subject.checked(), subject.credential, deadline)
    suggested = [suggestion async for suggestion in collector.discover(poll)]
    if not suggested:
        raise Failed("it suggests nothing for the device of the test")
    for suggestion in suggested:
        if not isinstance(suggestion, Suggestion) or not suggestion.reason:
            raise Failed("what it suggests is no api.Suggestion with a reason")
        try:
            collector.Options.model_validate(dict(suggestion.options))
        except ValueError as error:
            raise Failed(f"it suggests options that it would refuse: {error}") from None
