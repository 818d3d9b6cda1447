"""What a poll yields: readings, and the shape (series set) that polls of the same kind share.

A series set is content-addressed: its id is a hash of its names, labels and kinds, so any process
can make it without asking a database, and a poll of a known shape is only a time and some floats.
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


class Kind(enum.StrEnum):
    """How a value may be read: a counter only grows, a gauge moves, an info is 1 and its labels matter."""

    COUNTER = "counter"
    GAUGE = "gauge"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Reading:
    """One sample: the contract between a collector and everybody else."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = Kind.GAUGE
    #: Bits of a counter, after which it starts over: 32 or 64; 0 is unknown.
    width: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """Name, labels (sorted by key) and kind of one line of values; the width of a counter, where it is known."""

    name: str
    labels: Labels
    kind: Kind
    width: int = 0


@dataclass(frozen=True)
class SeriesSet:
    """An ordered tuple of series: the shape of a poll. Cache and reuse it; its id is made once."""

    series: tuple[Series, ...]

    @cached_property
    def id(self) -> int:
        """A stable signed 64-bit hash of the content, fit for a BIGINT column."""
        return self._made[0]

    @property
    def packed(self) -> bytes:
        """Its text, compressed to a twentieth: label names and interface names repeat themselves a lot."""
        return self._made[1]

    @cached_property
    def _made(self) -> tuple[int, bytes]:
        """Both come of the text, which takes long to write: once is enough."""
        text = self.to_json().encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return int.from_bytes(digest, "big", signed=True), zlib.compress(text, 1)

    @classmethod
    def from_packed(cls, packed: bytes) -> SeriesSet:
        return cls.from_json(zlib.decompress(packed).decode())

    def to_json(self) -> str:
        """The canonical text: what is hashed and what is stored. An unknown width leaves no trace in it.

        As `json.dumps` would write it, in a third of the time: a worker that starts makes thousands of these.
        """
        known: dict[int, str] = {}  # the columns of a row share their labels: written once
        rows = []
        for series in self.series:
            labels = known.get(id(series.labels))
            if labels is None:
                labels = known[id(series.labels)] = _labels_json(series.labels)
            width = f",{series.width}" if series.width else ""
            rows.append(
                f'[{encode_basestring(series.name)},{labels},"{series.kind._value_}"{width}]'
            )
        return f"[{','.join(rows)}]"

    @classmethod
    def from_json(cls, text: str) -> SeriesSet:
        rows = json.loads(text)
        return cls(
            tuple(Series(row[0], tuple(row[1].items()), Kind(row[2]), *row[3:]) for row in rows)
        )


def _labels_json(labels: Labels) -> str:
    return f"{{{','.join([f'{encode_basestring(label)}:{encode_basestring(text)}' for label, text in labels])}}}"


@dataclass(frozen=True)
class ReadingSet:
    """A whole shape with its values, in the same order: the cheap way to hand over many readings."""

    series: SeriesSet
    values: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.series.series):
            raise ValueError(f"{len(self.values)} values for {len(self.series.series)} series")

    def __iter__(self) -> Iterator[Reading]:
        for series, value in zip(self.series.series, self.values, strict=True):
            yield Reading(series.name, value, dict(series.labels), series.kind, series.width)

    @classmethod
    def of(cls, readings: Iterable[Reading]) -> ReadingSet:
        """Readings one by one to a set. The last of two with the same name and labels wins."""
        rows: dict[tuple[str, Labels], tuple[Series, float]] = {}
        for reading in readings:
            labels = tuple(sorted(reading.labels.items()))
            series = Series(reading.name, labels, reading.kind, reading.width)
            rows[reading.name, labels] = (series, float(reading.value))
        shape = SeriesSet(tuple(series for series, _ in rows.values()))
        return cls(shape, [value for _, value in rows.values()])


def pack(values: Sequence[float]) -> bytes:
    """Little-endian float64, eight bytes a value."""
    if type(values) is array and values.typecode == "d" and not _BIG_ENDIAN:
        return values.tobytes()
    packed = array("d", values)
    if _BIG_ENDIAN:
        packed.byteswap()
    return packed.tobytes()


def unpack(blob: bytes) -> array[float]:
    values = array("d")
    values.frombytes(blob)
    if _BIG_ENDIAN:
        values.byteswap()
    return values


_BIG_ENDIAN = array("H", [1]).tobytes() == b"\x00\x01"
