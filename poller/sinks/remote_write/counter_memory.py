"""The last poll of each target's counters, in Redis: any worker may poll the target next.

A sink can live without it: while Redis is away, wraps and resets are sent as the device gave them.
"""

from __future__ import annotations

import binascii
import struct
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from poller import errors
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.counter_bridges import CounterPlan, LastPoll
from poller.domain.metrics.reading import SeriesSet, pack, unpack
from poller.observability import logs
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

log = logs.get(__name__)

_HEAD: Final = struct.Struct("<qqq")  # instant of the poll, shape, start of the device or 0
#: How long a poll is remembered, beside three intervals of its target.
_KEPT_MS: Final = 3_600_000
_PLANS: Final = 4096


class CounterPlans:
    """The plans of the shapes that were seen last."""

    def __init__(self, all_counters: bool) -> None:
        self._all_counters = all_counters
        self._plans: OrderedDict[int, CounterPlan] = OrderedDict()

    def get(self, shape: SeriesSet) -> CounterPlan:
        plan = self._plans.get(shape.id)
        if plan is None:
            plan = self._plans[shape.id] = CounterPlan(shape, self._all_counters)
            if len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        return plan


class CounterMemory:
    """The records of one sink. Neither method raises while Redis is away."""

    def __init__(self, redis: Any, keys: Keys, sink: str) -> None:
        self._redis = redis
        self._keys = keys
        self._sink = sink
        self._is_away = False

    def read(self, target_ids: Iterable[int]) -> dict[int, bytes]:
        """Return the records of these targets, as far as there are any."""
        ids = list(target_ids)
        if not ids:
            return {}
        try:
            with store_errors(self._redis):
                found = self._redis.mget([self._keys.counters(self._sink, each) for each in ids])
        except errors.StoreError as error:
            self._note_away(error)
            return {}
        self._is_away = False
        texts = {each: text for each, text in zip(ids, found, strict=True) if text}
        return {each: _decoded(text) for each, text in texts.items()}

    def write(self, records: Iterable[tuple[PollTarget, bytes]]) -> None:
        """Store the record of the last poll of each target."""
        pipe = self._redis.pipeline(transaction=False)
        for target, record in records:
            kept_ms = _KEPT_MS + 3 * (target.max_ms or target.interval_ms)
            text = binascii.b2a_base64(record, newline=False)  # the client reads texts
            pipe.set(self._keys.counters(self._sink, target.id), text, px=kept_ms)
        try:
            with store_errors(self._redis):
                pipe.execute()
        except errors.StoreError as error:
            self._note_away(error)

    def _note_away(self, error: errors.StoreError) -> None:
        if not self._is_away:
            self._is_away = True
            log.warning("counters_not_corrected", sink=self._sink, reason=str(error))


def _decoded(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text)
    except ValueError:
        return b""  # no record of ours


def to_record(shape: SeriesSet, last: LastPoll) -> bytes:
    """Return the remembered form of a poll."""
    head = _HEAD.pack(last.at_ms, shape.id, last.boot_ms or 0)
    return head + pack(last.values)


def from_record(record: bytes, shape: SeriesSet, plan: CounterPlan) -> LastPoll | None:
    """Return the remembered poll; None if it was one of another shape."""
    if len(record) != _HEAD.size + 8 * len(plan.columns):
        return None
    at_ms, shape_id, boot_ms = _HEAD.unpack_from(record)
    if shape_id != shape.id:
        return None
    return LastPoll(at_ms, boot_ms or None, unpack(record[_HEAD.size :]))
