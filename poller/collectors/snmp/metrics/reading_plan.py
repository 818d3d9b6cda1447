"""The shape of a poll, compiled: a repeat poll of the same shape takes a few list operations.

A plan stores hashes of OIDs and label values, not the texts: a worker holds tens of thousands of
plans.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any

from poller.collectors.memory.keyed_values import NO_VALUES, KeyedValues
from poller.collectors.snmp.metrics import mapping, numeric_values
from poller.collectors.snmp.metrics.mapping import Mapped, Sample
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.wire.value_types import Value
from poller.domain import interned
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet

#: Hashes that different common values share: -1 and -2 have one hash, 0 and b"" another.
_AMBIGUOUS = frozenset({hash(-1), hash(0)})
#: Lists of positions cached for all devices together.
_SHARED_POSITIONS = 4_096


_NO_WIDTHS: Mapping[str, int] = interned.numbers({})


class Plan:
    """Turns the values of one shape into readings.

    Series are ordered: numbers taken as they are, then converted numbers, then constants.
    """

    __slots__ = (
        "_ambiguous",
        "_ambiguous_values",
        "_constants",
        "_converted",
        "_direct",
        "_direct_at",
        "_oids_hash",
        "_shaping",
        "_shaping_at",
        "_shaping_hash",
        "duplicates",
        "series",
    )

    def __init__(self, oids: Sequence[str], values: Sequence[Value], mapped: Mapped) -> None:
        position = {text: at for at, text in enumerate(oids)}
        direct: list[Sample] = []
        converted: list[Sample] = []
        constant: list[Sample] = []
        for sample in mapped.samples:
            if not sample.source:
                constant.append(sample)
            elif _is_direct(sample, values[position[sample.source]]):
                direct.append(sample)
            else:
                converted.append(sample)

        ordered = (*direct, *converted, *constant)
        # The same object for the same content: a sink compares identity.
        self.series = SeriesSet(tuple(sample.series for sample in ordered)).shared()
        self.duplicates: tuple[Series, ...] = tuple(mapped.duplicates)
        self._constants = _constants(tuple(sample.value for sample in constant))

        direct_at = tuple(position[sample.source] for sample in direct)
        self._direct_at = interned.sequence(direct_at)
        self._converted = tuple(
            (position[sample.source], sample.convert or numeric_values.number)
            for sample in converted
        )

        shaping = [position[text] for text in mapped.shaping if text in position]
        self._shaping_at = interned.sequence(tuple(sorted(shaping)))
        self._expect(oids, values)

    def _expect(self, oids: Sequence[str], values: Sequence[Value]) -> None:
        """Set the OIDs and label values that a later poll must repeat."""
        self._direct = _getter(self._direct_at)
        self._shaping = _getter(self._shaping_at)
        self._oids_hash = interned.value(hash(tuple(oids)))
        self._shaping_hash = hash(self._shaping(values))

        ambiguous = tuple(at for at in self._shaping_at if hash(values[at]) in _AMBIGUOUS)
        self._ambiguous = _getter(ambiguous)
        self._ambiguous_values = self._ambiguous(values)

    def narrowed(
        self, oids: Sequence[str], values: Sequence[Value], positions: Sequence[int]
    ) -> Plan:
        """Return a plan of the same series for fewer rows.

        `positions` are the places of the new rows in the old ones, -1 for a new row. Every number
        must be among the new rows; label texts that are not stay as they are.
        """
        new_at = {old: new for new, old in enumerate(positions) if old >= 0}
        direct_at = tuple(new_at[at] for at in self._direct_at)
        shaping_at = tuple(new_at[at] for at in self._shaping_at if at in new_at)

        plan = Plan.__new__(Plan)
        plan.series = self.series
        plan.duplicates = self.duplicates
        plan._constants = self._constants
        plan._direct_at = interned.sequence(direct_at)
        plan._converted = tuple((new_at[at], convert) for at, convert in self._converted)
        plan._shaping_at = interned.sequence(shaping_at)
        plan._expect(oids, values)
        return plan

    def direct_columns(self) -> Iterator[tuple[int, int]]:
        """Row and column of the readings, for each number that is taken as it is."""
        return ((row, column) for column, row in enumerate(self._direct_at))

    def converted_columns(self) -> Iterator[tuple[int, int, Callable[[Any], Any]]]:
        """Row, column of the readings and conversion, for each number that is converted."""
        first = len(self._direct_at)
        return ((row, first + at, convert) for at, (row, convert) in enumerate(self._converted))

    def shaping_positions(self) -> Sequence[int]:
        """The rows whose values must stay the same."""
        return self._shaping_at

    def read_exact(self, values: Sequence[Value]) -> ReadingSet:
        """Read the values the plan was made from, as Python integers.

        A float64 cannot hold every Counter64. A single poll at a terminal shows exact numbers;
        repeated polls store float64 anyway.
        """
        numbers: list[Any] = list(self._direct(values))
        for at, convert in self._converted:
            numbers.append(convert(values[at]))

        numbers.extend(self._constants)
        return ReadingSet(self.series, numbers)

    def read(self, oids_hash: int, values: Sequence[Value]) -> ReadingSet | None:
        """Read the values of a poll; None when more than numbers changed.

        The OIDs and label values must be the same, and each number must still be one.
        """
        if oids_hash != self._oids_hash or hash(self._shaping(values)) != self._shaping_hash:
            return None
        if self._ambiguous(values) != self._ambiguous_values:
            return None

        try:
            numbers = array("d", self._direct(values))
            for at, convert in self._converted:
                numbers.append(convert(values[at]))  # a None raises TypeError
        except TypeError:  # a value has another type than before, or no number
            return None

        numbers.extend(self._constants)
        return ReadingSet(self.series, numbers)


@dataclass(slots=True)
class Shapes:
    """The shapes of one target between its polls: the complete one, and one with parts missing."""

    plans: tuple[Plan, ...] = ()
    #: Values behind the labels of the last complete poll, for a table that fails to answer.
    label_values: KeyedValues = NO_VALUES
    #: A complete poll was read with exact types.
    types_learned: bool = False
    #: Bits of counters at that poll, by metric name.
    widths: Mapping[str, int] = field(default_factory=lambda: _NO_WIDTHS)

    def read(
        self, rows: Sequence[tuple[str, Value]], module_set: ModuleSet, complete: bool
    ) -> tuple[ReadingSet, Plan]:
        """Read the rows of a poll, at least one; compile a plan only when the shape is new."""
        oids, values = zip(*rows, strict=True)
        oids_hash = hash(oids)
        for plan in self.plans:
            readings = plan.read(oids_hash, values)
            if readings is not None:
                return readings, plan

        plan = self._compile(oids, values, module_set, complete)
        return plan.read_exact(values), plan

    def forget_labels(self) -> None:
        """Drop label values, which may belong to other rows by now.

        The complete shape stays: a plan checks its labels at every read.
        """
        self.plans = self.plans[:1]
        self.label_values = NO_VALUES

    def _compile(
        self,
        oids: Sequence[str],
        values: Sequence[Value],
        module_set: ModuleSet,
        complete: bool,
    ) -> Plan:
        """Compile a plan for a new shape and remember it."""
        by_oid = dict(zip(oids, values, strict=True))
        label_values = {} if complete else self.label_values.to_dict()
        mapped = mapping.map_values(by_oid, module_set, label_values)
        self._apply_widths(mapped)

        plan = Plan(oids, values, mapped)
        if complete:
            shaping = {text: value for text, value in by_oid.items() if text in mapped.shaping}
            self.label_values = KeyedValues.of(shaping)
            self.plans = (plan,)
            self.types_learned = True
        else:
            self.plans = (*self.plans[:1], plan)

        return plan

    def _apply_widths(self, mapped: Mapped) -> None:
        """Learn counter widths by metric, and apply them to rows that appear later.

        Only a first poll carries exact types.
        """
        widths = dict(self.widths)
        for at, sample in enumerate(mapped.samples):
            series = sample.series
            if series.width:
                widths[series.name] = series.width
            elif series.kind is Kind.COUNTER and series.name in widths:
                widened = replace(series, width=widths[series.name])
                mapped.samples[at] = replace(sample, series=widened)
        self.widths = interned.numbers(widths)


def _is_direct(sample: Sample, value: Value) -> bool:
    """Return whether the value is the number itself."""
    return isinstance(value, int) and sample.convert is None


@lru_cache(_SHARED_POSITIONS)
def _constants(values: tuple[float, ...]) -> array[float]:
    """Return one array for equal values, which is never changed."""
    return array("d", values)


@lru_cache(_SHARED_POSITIONS)
def _getter(positions: tuple[int, ...]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """Return an `itemgetter` that gives a tuple for no position and for one position, too."""
    if not positions:
        return _no_values
    if len(positions) == 1:
        only = positions[0]
        return lambda values: (values[only],)
    return itemgetter(*positions)


def _no_values(values: Sequence[Any]) -> tuple[Any, ...]:
    """Stand in for an `itemgetter` without positions."""
    return ()
