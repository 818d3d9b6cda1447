"""What a collector yielded in one poll, checked and put together: one reading set, the parts that failed.

A poll that yields the same series as the last one gives the identical `SeriesSet` object again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.collectors.api import PartFailed, Traffic
from poller.domain.metrics.reading import Kind, Labels, Reading, ReadingSet, Series, SeriesSet

#: In the sets of one poll, all of them together. More are not a device but a mistake: they are not even looked at.
MOST_SERIES = 200_000
#: So many series of a new set are checked before others have their turn.
TURN = 1_000

_MEMORY_KEY = "poller.gathering"
_KEPT = 3  # series sets remembered as checked, besides the newest


class NotAReading(TypeError):
    """The collector yielded something that is no reading; the text says what, and `where` its line."""

    where = ""


class TooMany(NotAReading):
    """More than any device has: nothing of that poll is kept."""


@dataclass(slots=True)
class _Known:
    """What is remembered of a target: checked series, and how its sets were joined."""

    checked: tuple[SeriesSet, ...] = ()
    joined_from: tuple[SeriesSet, ...] = ()
    joined: SeriesSet | None = None
    order: Sequence[int] | None = None  # None: as they come


class Gathered:
    """Takes what is yielded, one by one; raises NotAReading on rubbish."""

    __slots__ = ("_failed", "_known", "_loose", "_series", "_sets", "traffic")

    def __init__(self, memory: dict[str, Any]) -> None:
        known = memory.get(_MEMORY_KEY)
        if known is None:
            known = memory[_MEMORY_KEY] = _Known()
        self._known: _Known = known
        self._sets: list[ReadingSet] = []
        self._series = 0  # in these
        self._loose: list[Reading] = []
        self._failed: list[PartFailed] = []
        self.traffic: Traffic | None = None

    def take(self, item: object) -> None:
        if isinstance(item, ReadingSet):
            for _ in self.taking(item):
                pass
        elif isinstance(item, Reading):
            _check_series(item.name, item.labels, item.kind, item.width)
            _check_values((item.value,), item.name)
            self._loose.append(item)
        elif isinstance(item, PartFailed):
            if not isinstance(item.error, errors.DeviceError):
                raise NotAReading(f"PartFailed with {type(item.error).__name__}, not a DeviceError")
            if not isinstance(item.part, str):
                raise NotAReading(
                    f"PartFailed names its part by a {type(item.part).__name__}, not by a text"
                )
            self._failed.append(item)
        elif isinstance(item, Traffic):
            _check_values((item.sent, item.retried))
            self.traffic = item
        else:
            raise NotAReading(
                f"yielded {type(item).__name__}, not Reading, ReadingSet, PartFailed or Traffic"
            )

    def taking(self, readings: ReadingSet) -> Iterator[None]:
        """The same with a set, which may be large: others can have their turn whenever this yields."""
        self._series += len(readings.series.series)
        if self._series > MOST_SERIES:
            raise TooMany(f"more than {MOST_SERIES} series in the reading sets of one poll")
        if not any(readings.series is series for series in self._known.checked):
            yield from _check_shape(readings.series)
            self._known.checked = (*self._known.checked[-_KEPT:], readings.series)
        _check_values(readings.values)
        self._sets.append(readings)

    def failed(self) -> Sequence[PartFailed]:
        return self._failed

    def readings(self) -> ReadingSet | None:
        """Everything in one set; None when there is nothing."""
        if self._loose:
            self._sets.append(self._same_as_before(ReadingSet.of(self._loose)))
            self._loose = []
        sets = [readings for readings in self._sets if readings.values]
        if len(sets) <= 1:
            return sets[0] if sets else None
        return self._join(sets)

    def _same_as_before(self, readings: ReadingSet) -> ReadingSet:
        for series in self._known.checked:
            if series.series == readings.series.series:
                return ReadingSet(series, readings.values)
        self._known.checked = (*self._known.checked[-_KEPT:], readings.series)
        return readings

    def _join(self, sets: Sequence[ReadingSet]) -> ReadingSet:
        parts = tuple(readings.series for readings in sets)
        known = self._known
        if len(parts) != len(known.joined_from) or any(
            a is not b for a, b in zip(parts, known.joined_from, strict=True)
        ):
            known.joined, known.order = _joined(parts)
            known.joined_from = parts
        values = [value for readings in sets for value in readings.values]
        assert known.joined is not None
        return ReadingSet(
            known.joined, values if known.order is None else [values[at] for at in known.order]
        )


def _joined(parts: Sequence[SeriesSet]) -> tuple[SeriesSet, Sequence[int] | None]:
    """One series set of several; of two equal series the last one stays."""
    rows: list[Series] = [series for part in parts for series in part.series]
    last: dict[tuple[str, Labels], int] = {
        (row.name, row.labels): at for at, row in enumerate(rows)
    }
    if len(last) == len(rows):
        return SeriesSet(tuple(rows)), None
    order = sorted(last.values())
    return SeriesSet(tuple(rows[at] for at in order)), order


def _check_shape(shape: SeriesSet) -> Iterator[None]:
    seen: set[int] = set()  # the columns of a row share their labels
    for at, series in enumerate(shape.series, 1):
        labels = {} if id(series.labels) in seen else dict(series.labels)
        _check_series(series.name, labels, series.kind, series.width)
        seen.add(id(series.labels))
        if at % TURN == 0:
            yield


def _check_series(name: object, labels: object, kind: object, width: object) -> None:
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
    if type(width) is not int or width not in (0, 32, 64):
        raise NotAReading(f"{name}: width must be 0, 32 or 64, not {width!r:.80}")
    try:
        "".join((name, *labels, *labels.values())).encode()
    except UnicodeEncodeError:  # half a surrogate pair: no store could write it
        raise NotAReading(f"{name!a:.80}: a name or label is no valid text") from None


def _check_values(values: Sequence[float], name: str = "a value") -> None:
    """Numbers a float64 can hold; NaN and infinities are fine."""
    if type(values) is array and values.typecode == "d":
        return
    try:
        array("d", values)
    except (TypeError, OverflowError) as error:
        raise NotAReading(f"{name} is not a number: {error}") from None
