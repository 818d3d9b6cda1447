"""The shape of a poll, compiled: a repeat poll with the same OIDs and labels is a few list operations.

A plan keeps hashes of what it was made from, not the texts: a worker holds tens of thousands of plans.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from poller.collectors.snmp.metrics import label_text, mapping
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.wire.value_types import Value
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

#: Different values of these hashes are usual: -1 and -2, 0 and no octets at all.
_AMBIGUOUS = frozenset({hash(-1), hash(0)})
#: Lists of positions that are remembered for all devices together.
_SHARED = 4_096


class Plan:
    """Turns the values of one shape into readings."""

    __slots__ = (
        "_ambiguous",
        "_ambiguous_values",
        "_constants",
        "_converted",
        "_direct",
        "_direct_at",
        "_oids",
        "_shape",
        "_shaping",
        "_shaping_at",
        "duplicates",
        "series",
    )

    def __init__(
        self, oids: Sequence[str], values: Sequence[Value], mapped: mapping.Mapped
    ) -> None:
        position = {text: at for at, text in enumerate(oids)}
        direct = [
            s for s in mapped.samples if s.source and _is_plain(s, values[position[s.source]])
        ]
        converted = [
            s for s in mapped.samples if s.source and not _is_plain(s, values[position[s.source]])
        ]
        constant = [s for s in mapped.samples if not s.source]
        self.series = SeriesSet(tuple(s.series for s in (*direct, *converted, *constant)))
        self.duplicates: tuple[Series, ...] = tuple(mapped.duplicates)
        self._direct_at = _shared(tuple(position[s.source] for s in direct))
        self._converted = tuple(
            (position[s.source], s.convert or label_text.number) for s in converted
        )
        self._constants = array("d", (s.value for s in constant))
        self._shaping_at = _shared(
            tuple(sorted(position[text] for text in mapped.shaping if text in position))
        )
        self._expect(oids, values)

    def _expect(self, oids: Sequence[str], values: Sequence[Value]) -> None:
        self._direct = _getter(self._direct_at)
        self._shaping = _getter(self._shaping_at)
        self._oids = hash(tuple(oids))
        self._shape = hash(self._shaping(values))
        self._ambiguous = _getter(
            tuple(at for at in self._shaping_at if hash(values[at]) in _AMBIGUOUS)
        )
        self._ambiguous_values = self._ambiguous(values)

    def narrowed(
        self, oids: Sequence[str], values: Sequence[Value], positions: Sequence[int]
    ) -> Plan:
        """The same series from fewer rows: those at these positions of ours (-1: one that we do not have).

        Every number must be among them. Texts that are not among them stay as they are.
        """
        there = {old: new for new, old in enumerate(positions) if old >= 0}
        plan = Plan.__new__(Plan)
        plan.series, plan.duplicates, plan._constants = (
            self.series,
            self.duplicates,
            self._constants,
        )
        plan._direct_at = _shared(tuple(there[at] for at in self._direct_at))
        plan._converted = tuple((there[at], convert) for at, convert in self._converted)
        plan._shaping_at = _shared(tuple(there[at] for at in self._shaping_at if at in there))
        plan._expect(oids, values)
        return plan

    def exactly(self, values: Sequence[Value]) -> ReadingSet:
        """Of what the plan was made from, as the device said it: a float64 has no room for every Counter64.

        Whoever polls once, at a terminal, wants these; whoever polls again stores float64 anyway.
        """
        numbers: list[Any] = list(self._direct(values))
        numbers += [convert(values[at]) for at, convert in self._converted]
        return ReadingSet(self.series, [*numbers, *self._constants])

    def read(self, oids_hash: int, values: Sequence[Value]) -> ReadingSet | None:
        """None unless nothing but numbers changed: same OIDs, same label texts, and numbers where numbers were."""
        if oids_hash != self._oids or hash(self._shaping(values)) != self._shape:
            return None
        if self._ambiguous(values) != self._ambiguous_values:
            return None
        try:
            numbers = array("d", self._direct(values))
            for at, convert in self._converted:
                numbers.append(convert(values[at]))  # a None is a TypeError, as is meant here
        except TypeError:  # some other type than last time, or no number any more
            return None
        numbers.extend(self._constants)
        return ReadingSet(self.series, numbers)


@dataclass(slots=True)
class Shapes:
    """What is remembered of one target's shapes between its polls."""

    plans: list[Plan] = field(default_factory=list)
    #: Label texts of the last complete poll, for a table that fails to answer the next time.
    known: Mapping[str, Value] = field(default_factory=dict)
    #: Everything has been seen once, with its types; and how wide counters were then, by metric.
    settled: bool = False
    widths: dict[str, int] = field(default_factory=dict)

    def read(
        self, rows: Sequence[tuple[str, Value]], module_set: ModuleSet, complete: bool
    ) -> tuple[ReadingSet, Plan]:
        """Readings of a poll; compiles a plan only when the shape is new. `rows` must not be empty."""
        oids, values = zip(*rows, strict=True)
        oids_hash = hash(oids)
        for plan in self.plans:
            readings = plan.read(oids_hash, values)
            if readings is not None:
                return readings, plan
        plan = self._compile(oids, values, module_set, complete)
        return plan.exactly(values), plan

    def forget_names(self) -> None:
        """They may be those of other rows by now. Only the usual shape is kept: it is checked before it is used."""
        self.plans, self.known = self.plans[:1], {}

    def _compile(
        self, oids: Sequence[str], values: Sequence[Value], module_set: ModuleSet, complete: bool
    ) -> Plan:
        by_oid = dict(zip(oids, values, strict=True))
        mapped = mapping.map_values(by_oid, module_set, {} if complete else self.known)
        self._keep_widths(mapped)
        plan = Plan(oids, values, mapped)
        for old in self.plans:
            if old.series.series == plan.series.series:
                plan.series = old.series  # the same object, so that a sink knows it by identity
        if complete:
            self.known = {text: by_oid[text] for text in mapped.shaping if text in by_oid}
            self.plans = [plan]
            self.settled = True
        else:  # the usual shape stays, beside the one with something missing
            self.plans = [*self.plans[:1], plan]
        return plan

    def _keep_widths(self, mapped: mapping.Mapped) -> None:
        """Only a first poll is told types. A row that comes later counts as its column did then."""
        for at, sample in enumerate(mapped.samples):
            series = sample.series
            if series.width:
                self.widths[series.name] = series.width
            elif series.kind is Kind.COUNTER and series.name in self.widths:
                known = replace(series, width=self.widths[series.name])
                mapped.samples[at] = replace(sample, series=known)


def _is_plain(sample: mapping.Sample, value: Value) -> bool:
    return isinstance(value, int) and sample.convert is None


@lru_cache(_SHARED)
def _shared(positions: tuple[int, ...]) -> tuple[int, ...]:
    """The first tuple of this content: devices of one kind have their numbers at the same positions."""
    return positions


@lru_cache(_SHARED)
def _getter(positions: tuple[int, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """`operator.itemgetter` that gives a tuple for none and for one position, too. Shared likewise."""
    if not positions:
        return lambda values: ()
    if len(positions) == 1:
        (only,) = positions
        return lambda values: (values[only],)
    return itemgetter(*positions)
