"""The bytes of a series up to its value in remote write 1.0, made once per target and shape.

A sample of a series is its prefix, eight bytes and an instant. The cache is bounded in bytes; the
least recently used shape leaves first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.outside_labels import METRIC_NAME
from poller.domain.metrics.reading import Labels, SeriesSet
from poller.sinks.outside_series import OutsideSeries, SeriesMapper
from poller.sinks.remote_write import protobuf_fields

#: TimeSeries.samples with the length of a sample, and the tag of its value.
_SAMPLE_HEAD: Final = b"\x12\x10\x09"
#: Bytes of a sample and its head: value and instant with their tags.
_SAMPLE_BYTES: Final = 18
#: Bytes of memory that an entry needs beside the prefixes themselves, per series.
_OVERHEAD: Final = 48


@dataclass(frozen=True, slots=True)
class ShapePrefixes:
    """The prefixes of a shape's series that are sent, and the columns of their values."""

    prefixes: list[bytes]
    columns: list[int]
    doubled: int  # series that equal an earlier one in the store
    pick: Callable[[Any], tuple[bytes, ...]] | None  # None: all columns, in order
    longest: int  # bytes of the longest prefix

    @property
    def memory(self) -> int:
        """About the bytes of memory of this entry."""
        return sum(map(len, self.prefixes)) + _OVERHEAD * len(self.prefixes)


class PrefixCache:
    """The prefixes of the shapes that were sent last. One thread uses it."""

    def __init__(self, mapper: SeriesMapper, limit_bytes: int) -> None:
        self._mapper = mapper
        self._limit = limit_bytes
        self._used = 0
        self._entries: OrderedDict[tuple[int, int, int], ShapePrefixes] = OrderedDict()
        self._names: dict[str, bytes] = {}

    def get(self, target: PollTarget, shape: SeriesSet) -> ShapePrefixes:
        """Return the prefixes of a shape of a target."""
        key = (target.id, target.version, shape.id)
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
            return entry

        entry = self._made(target, shape)
        self._entries[key] = entry
        self._used += entry.memory
        while self._used > self._limit and len(self._entries) > 1:
            _, oldest = self._entries.popitem(last=False)
            self._used -= oldest.memory
        return entry

    def _made(self, target: PollTarget, shape: SeriesSet) -> ShapePrefixes:
        mapped = self._mapper.outside(target, shape)
        prefixes = self._prefixes(mapped.series)
        columns = [series.column for series in mapped.series]
        return ShapePrefixes(
            prefixes=prefixes,
            columns=columns,
            doubled=len(mapped.doubled),
            pick=_picker(columns, len(shape.series)),
            longest=max(map(len, prefixes), default=0),
        )

    def _prefixes(self, series: list[OutsideSeries]) -> list[bytes]:
        rows: dict[int, tuple[bytes, bytes]] = {}
        prefixes = []
        for _, name, labels in series:
            row = rows.get(id(labels))
            if row is None:
                row = rows[id(labels)] = _row(labels)
            before, after = row
            named = self._names.get(name) or self._name(name)
            length = len(before) + len(named) + len(after) + _SAMPLE_BYTES
            size = protobuf_fields.varint(length)
            prefixes.append(b"".join((b"\x0a", size, before, named, after, _SAMPLE_HEAD)))
        return prefixes

    def _name(self, name: str) -> bytes:
        if len(self._names) >= 8192:  # devices choose names
            self._names.clear()
        encoded = self._names[name] = _label(METRIC_NAME, name)
        return encoded


def _picker(columns: list[int], width: int) -> Callable[[Any], tuple[bytes, ...]] | None:
    if columns == list(range(width)):
        return None
    if len(columns) > 1:
        return itemgetter(*columns)
    return lambda values: tuple(values[column] for column in columns)


def _row(labels: Labels) -> tuple[bytes, bytes]:
    """Return the labels that sort before and after the metric's name."""
    before = [_label(name, text) for name, text in labels if name < METRIC_NAME]
    after = [_label(name, text) for name, text in labels if name > METRIC_NAME]
    return b"".join(before), b"".join(after)


def _label(name: str, text: str) -> bytes:
    content = protobuf_fields.text(0x0A, name) + protobuf_fields.text(0x12, text)
    return protobuf_fields.delimited(0x0A, content)
