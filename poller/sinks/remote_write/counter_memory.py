"""The last poll of each target's counters, in Redis: any worker may poll the target next.

A sink can live without it: while Redis is away, wraps and resets are sent as the device gave them.
"""

from __future__ import annotations

import struct
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redis.client import NEVER_DECODE

from poller import errors
from poller.domain.metrics.counter_bridges import CounterPlan, LastPoll
from poller.domain.metrics.reading import SeriesSet
from poller.observability import logs
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

log = logs.get(__name__)

_HEAD: Final = struct.Struct("<qqq")  # instant of the poll, shape, start of the device or 0
_HOUR_S: Final = 3600
_KEPT_MS: Final = 3 * _HOUR_S * 1000
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
    """The records of one sink. Neither method raises while Redis is away.

    Records of an hour are in one hash, which expires as a whole: no target needs a key of its own,
    and removed targets leave by themselves.
    """

    def __init__(self, redis: Any, keys: Keys, sink: str) -> None:
        self._redis = redis
        self._keys = keys
        self._sink = sink
        self._is_away = False

    def read(self, target_ids: Iterable[int]) -> dict[int, bytes]:
        """Return the records of these targets, of this hour or the last one."""
        found: dict[int, bytes] = {}
        hour = _hour()
        try:
            for key in (self._key(hour), self._key(hour - 1)):
                missing = [each for each in target_ids if each not in found]
                if not missing:
                    break
                with store_errors(self._redis):
                    # The client reads texts elsewhere. Bytes are read as they are.
                    records = self._redis.execute_command(
                        "HMGET", key, *missing, **{NEVER_DECODE: True}
                    )
                for target_id, record in zip(missing, records, strict=True):
                    if record:
                        found[target_id] = record
        except errors.StoreError as error:
            self._note_away(error)
            return {}
        self._is_away = False
        return found

    def write(self, records: Mapping[int, bytes]) -> None:
        """Store the record of the last poll of each target."""
        key = self._key(_hour())
        pipe = self._redis.pipeline(transaction=False)
        pipe.hset(key, mapping=records)
        pipe.pexpire(key, _KEPT_MS)
        try:
            with store_errors(self._redis):
                pipe.execute()
        except errors.StoreError as error:
            self._note_away(error)

    def _key(self, hour: int) -> str:
        return self._keys.counters(self._sink, hour)

    def _note_away(self, error: errors.StoreError) -> None:
        if not self._is_away:
            self._is_away = True
            log.warning("counters_not_corrected", sink=self._sink, reason=str(error))


def _hour() -> int:
    return int(time.time()) // _HOUR_S


def to_record(shape: SeriesSet, last: LastPoll) -> bytes:
    """Return the remembered form of a poll."""
    head = _HEAD.pack(last.at_ms, shape.id, last.boot_ms or 0)
    return head + last.packed


def from_record(record: bytes, shape: SeriesSet, plan: CounterPlan) -> LastPoll | None:
    """Return the remembered poll; None if it was one of another shape."""
    if len(record) != _HEAD.size + 8 * len(plan.columns):
        return None
    at_ms, shape_id, boot_ms = _HEAD.unpack_from(record)
    if shape_id != shape.id:
        return None
    return LastPoll(at_ms, boot_ms or None, record[_HEAD.size :])
