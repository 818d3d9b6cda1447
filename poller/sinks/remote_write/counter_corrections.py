"""Judges the counters of each poll against the poll before: bridges, and starts of counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from poller.domain.metrics.counter_bridges import Bridge
from poller.sinks.api import Sample
from poller.sinks.remote_write import counter_memory
from poller.sinks.remote_write.counter_memory import CounterMemory, CounterPlans


class Correction(NamedTuple):
    """Additions to a poll: samples between, and starts of counters by column."""

    bridges: list[Bridge]
    starts: Mapping[int, int]


NO_STARTS: Mapping[int, int] = {}
NOTHING = Correction([], NO_STARTS)


class CounterCorrections:
    """The corrections of the polls of one call. `begin`, then `of` in order, then `commit`."""

    def __init__(self, memory: CounterMemory, with_bridges: bool, with_starts: bool) -> None:
        self._memory = memory
        self._with_bridges = with_bridges
        self._plans = CounterPlans(all_counters=with_starts)
        self._with_starts = with_starts
        self._records: dict[int, bytes] = {}
        self._changed: set[int] = set()

    def begin(self, samples: Iterable[Sample]) -> None:
        """Read the last polls of all targets at once."""
        ids = set()
        for sample in samples:
            if not sample.is_end and self._plans.get(sample.readings.series).columns:
                ids.add(sample.target.id)
        self._changed.clear()
        self._records = self._memory.read(ids)

    def of(self, sample: Sample) -> Correction:
        """Return the correction of a poll, which is the last poll of its target from then on."""
        shape = sample.readings.series
        plan = self._plans.get(shape)
        if sample.is_end or not plan.columns:
            return NOTHING
        record = self._records.get(sample.target.id)
        before = counter_memory.from_record(record, shape, plan) if record else None
        if before is not None and before.at_ms >= sample.at_ms:
            return NOTHING  # the poll waited in a spool, and a later one was written

        target, values = sample.target, sample.readings.values
        now = plan.last_poll(before, sample.at_ms, values)
        self._records[target.id] = counter_memory.to_record(shape, now)
        self._changed.add(target.id)
        if before is None:
            return NOTHING

        bridges: list[Bridge] = []
        if self._with_bridges:
            bridges = plan.bridges(before, now, values, target.max_ms or target.interval_ms)
        starts = plan.starts(before, now, values) if self._with_starts else NO_STARTS
        return Correction(bridges, starts)

    def commit(self) -> None:
        """Remember the last polls, once all of them are in the store."""
        if self._changed:
            self._memory.write({key: self._records[key] for key in self._changed})
