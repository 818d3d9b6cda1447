"""Checks of the readings and suggestions for a healthy device."""

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
    """The device of the test is read completely, also with the memory of the first poll."""
    memory: dict[str, object] = {}
    for attempt in ("at its first poll", "at its second poll, with the memory of the first"):
        seen = await subject.poll(memory=memory)
        if not seen.is_ok:
            raise Failed(f"{attempt} the device of the test was not read: {seen.told}")
        if seen.outcome.readings is None:
            raise Failed(f"{attempt} the collector yielded no reading of the device of the test")


async def readings(subject: Subject) -> None:
    """Readings have names, labels, kinds and values that every sink can store."""
    seen = await subject.poll()
    if seen.outcome.result not in (Result.OK, Result.PARTIAL):
        raise Inapplicable("the collector read nothing")
    yielded = list(_readings(seen))
    for reading in yielded:
        _check_names(reading)
        _check_value(reading)
    _check_series(yielded)


def _readings(seen: Seen) -> Iterator[Reading]:
    for item in seen.ear.items:
        if isinstance(item, Reading):
            yield item
        elif isinstance(item, ReadingSet):
            yield from item


def _check_names(reading: Reading) -> None:
    if not _NAME.fullmatch(reading.name):
        raise Failed(
            f'the metric name "{reading.name}" is not valid: '
            "use letters, digits and _, and do not begin with a digit"
        )
    for label in reading.labels:
        if not _LABEL.fullmatch(label) or label.startswith("__"):
            raise Failed(
                f'{reading.name}: the label name "{label}" is not valid: '
                "use letters, digits and _, and do not begin with a digit or __"
            )


def _check_value(reading: Reading) -> None:
    """Only a gauge may be NaN, which means that its value is unknown; no value may be infinite."""
    value = float(reading.value)
    if math.isinf(value):
        raise Failed(f"{reading.name} is infinite: yield no reading when there is no value")
    if reading.kind is Kind.COUNTER and not value >= 0:
        raise Failed(
            f"{reading.name} is a counter with the value {value:g}: counters begin at 0 and grow"
        )
    if reading.kind is Kind.INFO and value != 1:
        raise Failed(
            f"{reading.name} is an info with the value {value:g}: the value of an info is 1"
        )


def _check_series(yielded: Iterable[Reading]) -> None:
    kinds: dict[str, Kind] = {}
    times: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()
    for reading in yielded:
        if kinds.setdefault(reading.name, reading.kind) is not reading.kind:
            raise Failed(
                f"{reading.name} is a {kinds[reading.name]} and a {reading.kind}: "
                "a metric has one kind"
            )
        times[reading.name, tuple(sorted(reading.labels.items()))] += 1
    for (name, labels), number in times.items():
        if number > 1:
            raise Failed(
                f"{name} {dict(labels)} came {number} times in one poll, and only the last is "
                "stored: add a label that distinguishes them"
            )


async def discovery(subject: Subject) -> None:
    """Suggested targets for the device of the test have a reason and valid options."""
    collector: Any = subject.make()
    if not isinstance(subject.make(), Discovers):
        raise Inapplicable("the collector has no `discover`")
    deadline = asyncio.get_running_loop().time() + AMPLE_S
    device = subject.device
    poll = Poll(1, "device", device.address, subject.checked(), subject.credential, deadline)
    suggested = [suggestion async for suggestion in collector.discover(poll)]
    if not suggested:
        raise Failed("the collector suggests nothing for the device of the test")
    for suggestion in suggested:
        if not isinstance(suggestion, Suggestion) or not suggestion.reason:
            raise Failed("a suggestion is not an api.Suggestion with a reason")
        try:
            collector.Options.model_validate(dict(suggestion.options))
        except ValueError as error:
            raise Failed(f"the collector suggests options that it would refuse: {error}") from None
