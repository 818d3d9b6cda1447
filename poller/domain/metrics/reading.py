"""The readings of a poll, and the shape (series set) that polls of the same kind share.

A series set is content-addressed: its id is a hash of its names, labels and kinds. Every process
can make it without a database, and a poll of a stored shape is only a time and some floats.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from poller.domain.metrics import series_columns
from poller.domain.metrics.series import Kind, Labels, Series
from poller.domain.metrics.series_columns import Columns, Layout

__all__ = ["Kind", "Labels", "Reading", "ReadingSet", "Series", "SeriesSet", "pack", "unpack"]

_BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"
_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample: the contract between a collector and the rest of the program."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.GAUGE
    #: Bits of a counter, after which it starts over: 32 or 64; 0 is unknown.
    width: int = 0


class SeriesSet:
    """The shape of a poll: an ordered tuple of series, which never changes.

    Reuse an instance, its id is computed once. A shared set has no series as objects: they are made
    for each caller of `series`, so a caller that needs them at every poll keeps what it made of
    them.
    """

    __slots__ = ("__weakref__", "_columns", "_id", "_series")

    def __init__(self, series: tuple[Series, ...]) -> None:
        self._series: tuple[Series, ...] | None = series
        self._columns: Columns | None = None
        self._id: int | None = None

    def __len__(self) -> int:
        """Return the number of series."""
        held = self._series
        return self._to_columns().size if held is None else len(held)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SeriesSet) or len(self) != len(other):
            return False
        if self._columns is not None and other._columns is not None:
            return self._columns == other._columns
        return self.series == other.series

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"SeriesSet({self.series!r})"

    @property
    def series(self) -> tuple[Series, ...]:
        """The series, in their order."""
        held = self._series
        return self._to_columns().series() if held is None else held

    @property
    def kinds(self) -> Sequence[Kind]:
        """The kind of each series."""
        held = self._series
        return self._to_columns().kinds if held is None else [each.kind for each in held]

    @property
    def layout(self) -> Layout | None:
        """All of it but the texts of labels: one object for equal ones. None without columns."""
        return None if self._columns is None else self._columns.layout

    def shared(self) -> SeriesSet:
        """Return the one set of this process with this content; it takes little memory."""
        columns = self._to_columns()
        key = hash(columns)
        found = _shared_sets.get(key)
        if found is not None and found._columns == columns:
            return found
        self._columns = columns
        self._series = None
        _shared_sets[key] = self
        return self

    def _to_columns(self) -> Columns:
        held = self._series
        if self._columns is not None:
            return self._columns
        assert held is not None
        return series_columns.columns_of(held)

    @property
    def id(self) -> int:
        """A stable signed 64-bit hash of the content, for a BIGINT column."""
        if self._id is None:
            digest = hashlib.blake2b(self.to_json().encode(), digest_size=8).digest()
            self._id = int.from_bytes(digest, "big", signed=True)
        return self._id

    @property
    def packed(self) -> bytes:
        """The canonical text, compressed to about a twentieth: labels repeat."""
        return zlib.compress(self.to_json().encode(), 1)

    @classmethod
    def from_packed(cls, packed: bytes) -> SeriesSet:
        """Return the shape of a compressed text."""
        text = zlib.decompress(packed).decode()
        return cls.from_json(text)

    def to_json(self) -> str:
        """Return the canonical text, which is hashed and stored. An unknown width is left out.

        The text equals that of `json.dumps`, in a third of the time: a worker that starts writes
        thousands of them.
        """
        return self._to_columns().to_json()

    @classmethod
    def from_json(cls, text: str) -> SeriesSet:
        """Return the shape of a canonical text."""
        series = []
        for name, labels, kind, *width in json.loads(text):
            series.append(Series(name, tuple(labels.items()), _KINDS[kind], *width))
        return cls(tuple(series))


#: The shared sets that are in use, by the hash of their content.
_shared_sets: WeakValueDictionary[int, SeriesSet] = WeakValueDictionary()


@dataclass(frozen=True)
class ReadingSet:
    """The values of a shape, in its order: the cheap form of many readings."""

    series: SeriesSet
    values: Sequence[float]

    def __post_init__(self) -> None:
        values = len(self.values)
        series = len(self.series)
        if values != series:
            raise ValueError(f"{values} values for {series} series")

    def __iter__(self) -> Iterator[Reading]:
        for series, value in zip(self.series.series, self.values, strict=True):
            labels = dict(series.labels)
            yield Reading(series.name, value, labels, series.kind, series.width)

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> ReadingSet:
        """Return the set of these readings. The last of two with the same name and labels wins."""
        rows: dict[tuple[str, Labels], tuple[Series, float]] = {}
        for reading in readings:
            labels = tuple(sorted(reading.labels.items()))
            series = Series(reading.name, labels, reading.kind, reading.width)
            rows[reading.name, labels] = (series, float(reading.value))

        series_of_rows = tuple(series for series, _ in rows.values())
        values = [value for _, value in rows.values()]
        return cls(SeriesSet(series_of_rows), values)


def pack(values: Sequence[float]) -> bytes:
    """Return the values as little-endian float64, eight bytes each."""
    if type(values) is array and values.typecode == "d" and not _BIG_ENDIAN:
        return values.tobytes()

    packed = array("d", values)
    if _BIG_ENDIAN:
        packed.byteswap()
    return packed.tobytes()


def unpack(blob: bytes) -> array[float]:
    """Return the values of little-endian float64 bytes."""
    values = array("d")
    values.frombytes(blob)
    if _BIG_ENDIAN:
        values.byteswap()
    return values
