"""Checks the items a collector yields in one poll and joins its readings into one reading set.

A poll that yields the same series as the last one gets the identical `SeriesSet` object again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.collectors.api import PartFailed, Traffic
from poller.collectors.memory.series_sets import MAX_SERIES, with_newest
from poller.domain.metrics.reading import Kind, Labels, Reading, ReadingSet, Series, SeriesSet

#: Bytes of the names and labels of one reading set. A set with more is a mistake.
MAX_TEXT = 32 * 2**20
#: Series of a new set that are checked before the event loop serves other polls.
CHECKS_PER_STEP = 1_000

_MEMORY_KEY = "poller.series"
_CACHED_SETS = 4  # checked series sets in a target's memory
_WIDTHS = (0, 32, 64)


class NotAReading(TypeError):
    """The collector yielded an object that is no reading; `where` is the line of its `yield`."""

    where = ""


class TooManyReadings(NotAReading):
    """The collector yielded more than any device has; no reading of that poll is used."""


@dataclass(slots=True)
class _SeriesCache:
    """Series of a target's last polls: checked sets, and the last join of several sets."""

    checked: tuple[SeriesSet, ...] = ()
    joined_from: tuple[SeriesSet, ...] = ()
    joined: SeriesSet | None = None
    order: Sequence[int] | None = None  # None: the order of the parts

    def add(self, series: SeriesSet) -> None:
        self.checked = with_newest(self.checked, series, _CACHED_SETS)


class YieldedReadings:
    """Collects the items of one poll, one by one; raises NotAReading for anything else."""

    __slots__ = ("_cache", "_readings", "_series_count", "_sets", "failures", "traffic")

    def __init__(self, memory: dict[str, Any]) -> None:
        cache = memory.get(_MEMORY_KEY)
        if cache is None:
            cache = memory[_MEMORY_KEY] = _SeriesCache()
        self.failures: list[PartFailed] = []
        self.traffic: Traffic | None = None
        self._cache: _SeriesCache = cache
        self._sets: list[ReadingSet] = []
        self._series_count = 0  # in the sets
        self._readings: list[Reading] = []

    def take(self, item: object) -> None:
        if isinstance(item, ReadingSet):
            for _ in self.take_set(item):
                pass
        elif isinstance(item, Reading):
            _check_series(item.name, item.labels, item.kind, item.width)
            _check_values((item.value,), item.name)
            self._readings.append(item)
        elif isinstance(item, PartFailed):
            _check_failure(item)
            self.failures.append(item)
        elif isinstance(item, Traffic):
            _check_values((item.sent, item.retried, item.answered_mono))
            self.traffic = item
        else:
            raise NotAReading(
                f"yielded {type(item).__name__}, not Reading, ReadingSet, PartFailed or Traffic"
            )

    def take_set(self, readings: ReadingSet) -> Iterator[None]:
        """Take a reading set in steps: the caller may serve other polls at each yield."""
        self._series_count += len(readings.series)
        if self._series_count > MAX_SERIES:
            raise TooManyReadings(f"more than {MAX_SERIES} series in the reading sets of one poll")
        if not any(readings.series is checked for checked in self._cache.checked):
            yield from _check_shape(readings.series)
            self._cache.add(readings.series)
        _check_values(readings.values)
        self._sets.append(readings)

    def readings(self) -> ReadingSet | None:
        """Return all readings as one set; None if there are none."""
        if self._readings:
            self._sets.append(self._with_cached_series(ReadingSet.of(self._readings)))
            self._readings = []
        sets = [readings for readings in self._sets if readings.values]
        if not sets:
            return None
        return sets[0] if len(sets) == 1 else self._join(sets)

    def _with_cached_series(self, readings: ReadingSet) -> ReadingSet:
        for checked in self._cache.checked:
            if checked.series == readings.series.series:
                return ReadingSet(checked, readings.values)
        self._cache.add(readings.series)
        return readings

    def _join(self, sets: Sequence[ReadingSet]) -> ReadingSet:
        cache = self._cache
        parts = tuple(readings.series for readings in sets)
        if not _identical(parts, cache.joined_from):
            cache.joined, cache.order = _join_series(parts)
            cache.joined_from = parts
        assert cache.joined is not None

        values = [value for readings in sets for value in readings.values]
        if cache.order is not None:
            values = [values[at] for at in cache.order]
        return ReadingSet(cache.joined, values)


def _identical(parts: Sequence[SeriesSet], others: Sequence[SeriesSet]) -> bool:
    if len(parts) != len(others):
        return False
    return all(part is other for part, other in zip(parts, others, strict=True))


def _join_series(parts: Sequence[SeriesSet]) -> tuple[SeriesSet, Sequence[int] | None]:
    """Join series sets into one; of two equal series the last one stays.

    The second result selects the values of the joined set; None: all of them, in their order.
    """
    rows: list[Series] = [series for part in parts for series in part.series]
    last: dict[tuple[str, Labels], int] = {}
    for at, row in enumerate(rows):
        last[row.name, row.labels] = at
    if len(last) == len(rows):
        return SeriesSet(tuple(rows)), None
    order = sorted(last.values())
    return SeriesSet(tuple(rows[at] for at in order)), order


def _check_shape(shape: SeriesSet) -> Iterator[None]:
    checked: set[int] = set()  # the columns of a row share one labels object
    text = 0  # bytes
    for number, series in enumerate(shape.series, 1):
        labels = {} if id(series.labels) in checked else dict(series.labels)
        text += _check_series(series.name, labels, series.kind, series.width)
        checked.add(id(series.labels))
        if text > MAX_TEXT:
            raise TooManyReadings(f"more than {MAX_TEXT:,} bytes of names and labels")
        if number % CHECKS_PER_STEP == 0:
            yield


def _check_series(name: object, labels: object, kind: object, width: object) -> int:
    """Return the length of name and labels. Raises NotAReading."""
    if not isinstance(name, str) or not name:
        raise NotAReading(f"a metric name must be a text, not {name!r:.80}")
    if not isinstance(labels, Mapping):
        raise NotAReading(f"{name}: labels must be a mapping, not {type(labels).__name__}")
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise NotAReading(
                f"{name}: label {key!r:.80} must be a text with a text, not {type(value).__name__}"
            )
    if not isinstance(kind, Kind):
        raise NotAReading(f"{name}: kind must be a Kind, not {type(kind).__name__}")
    if type(width) is not int or width not in _WIDTHS:
        raise NotAReading(f"{name}: width must be 0, 32 or 64, not {width!r:.80}")
    try:
        return len("".join((name, *labels, *labels.values())).encode())
    except UnicodeEncodeError:  # half of a surrogate pair, which no store can write
        raise NotAReading(f"{name!a:.80}: a name or label is no valid text") from None


def _check_failure(failure: Any) -> None:
    if not isinstance(failure.error, errors.DeviceError):
        raise NotAReading(f"PartFailed with {type(failure.error).__name__}, not a DeviceError")
    if not isinstance(failure.part, str):
        kind = type(failure.part).__name__
        raise NotAReading(f"PartFailed names its part by a {kind}, not by a text")


def _check_values(values: Sequence[float], name: str = "a value") -> None:
    """Require numbers that a float64 can hold; NaN and infinities are valid."""
    if type(values) is array and values.typecode == "d":
        return
    try:
        array("d", values)
    except (TypeError, OverflowError) as error:
        raise NotAReading(f"{name} is not a number: {error}") from None
