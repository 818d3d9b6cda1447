"""The readings of a poll, and the shape (series set) that polls of the same kind share.

A series set is content-addressed: its id is a hash of its names, labels and kinds. Every process
can make it without a database, and a poll of a stored shape is only a time and some floats.
"""

from __future__ import annotations

import enum
import hashlib
import json
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from json.encoder import encode_basestring

Labels = tuple[tuple[str, str], ...]
_BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"


class Kind(enum.StrEnum):
    """The meaning of a value: a counter only grows, a gauge moves, an info is 1 and has labels."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"


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


@dataclass(frozen=True, slots=True)
class Series:
    """Name, labels (sorted by key) and kind of one line of values; the width of a counter or 0."""

    name: str
    labels: Labels
    kind: Kind
    width: int = 0


@dataclass(frozen=True)
class SeriesSet:
    """The shape of a poll: an ordered tuple of series.

    Reuse an instance, its id is computed once.
    """

    series: tuple[Series, ...]

    @cached_property
    def id(self) -> int:
        """A stable signed 64-bit hash of the content, for a BIGINT column."""
        return self._id_and_packed[0]

    @property
    def packed(self) -> bytes:
        """The canonical text, compressed to about a twentieth: labels repeat."""
        return self._id_and_packed[1]

    @cached_property
    def _id_and_packed(self) -> tuple[int, bytes]:
        # Both need the text, and the text is slow to write.
        text = self.to_json().encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True), zlib.compress(text, 1)

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
        texts: dict[int, str] = {}  # by identity: the columns of a row share their labels
        rows = []
        for series in self.series:
            labels = texts.get(id(series.labels))
            if labels is None:
                labels = texts[id(series.labels)] = _labels_json(series.labels)
            width = f",{series.width}" if series.width else ""
            rows.append(
                f'[{encode_basestring(series.name)},{labels},"{series.kind._value_}"{width}]'
            )
        return f"[{','.join(rows)}]"

    @classmethod
    def from_json(cls, text: str) -> SeriesSet:
        """Return the shape of a canonical text."""
        series = []
        for name, labels, kind, *width in json.loads(text):
            series.append(Series(name, tuple(labels.items()), _KINDS[kind], *width))
        return cls(tuple(series))


def _labels_json(labels: Labels) -> str:
    pairs = [f"{encode_basestring(label)}:{encode_basestring(text)}" for label, text in labels]
    return f"{{{','.join(pairs)}}}"


@dataclass(frozen=True)
class ReadingSet:
    """The values of a shape, in its order: the cheap form of many readings."""

    series: SeriesSet
    values: Sequence[float]

    def __post_init__(self) -> None:
        values = len(self.values)
        series = len(self.series.series)
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
