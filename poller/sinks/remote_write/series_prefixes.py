"""The bytes of a series up to its value in remote write 1.0, made once per target and shape.

The bytes are two pieces: a head with the name of the metric, which many targets share, and the
labels of a row, which the series of that row share. So an entry is small, and there is room for
many of them; the cache is bounded in bytes, and the least recently used shape leaves first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.outside_labels import METRIC_NAME
from poller.domain.metrics.reading import Labels, SeriesSet
from poller.sinks.outside_series import SeriesMapper
from poller.sinks.remote_write import protobuf_fields

#: TimeSeries.samples with the length of a sample, and the tag of its value.
_SAMPLE_HEAD: Final = b"\x12\x10\x09"
#: Bytes of a sample and its head: value and instant with their tags.
_SAMPLE_BYTES: Final = 18
#: Bytes of memory that an entry needs: for each series, and at all.
_SERIES_BYTES: Final = 32
_ENTRY_BYTES: Final = 1000
_MOST_HEADS: Final = 65_536


@dataclass(frozen=True, slots=True)
class ShapePrefixes:
    """The series of a shape that are sent. Lists have one entry for each of them."""

    heads: list[bytes]  # the length of the series, and the name of its metric
    rows: list[bytes]  # the labels after the name, up to the value
    names: list[str]
    labels: list[Labels]
    columns: Sequence[int]  # of the values
    pick: Callable[[Any], tuple[bytes, ...]] | None  # None: all columns, in order
    doubled: int  # series that equal an earlier one in the store
    longest: int  # bytes of the longest series
    memory: int  # about the bytes of this entry


class PrefixCache:
    """The prefixes of the shapes that were sent last. One thread uses it."""

    def __init__(self, mapper: SeriesMapper, limit_bytes: int) -> None:
        self._mapper = mapper
        self._limit = limit_bytes
        self._used = 0
        self._entries: OrderedDict[tuple[int, int, int], ShapePrefixes] = OrderedDict()
        self._heads: dict[tuple[bytes, str, int], bytes] = {}

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
        encoded: dict[int, tuple[bytes, bytes]] = {}
        heads: list[bytes] = []
        rows: list[bytes] = []
        longest = 0
        for _, name, labels in mapped.series:
            row = encoded.get(id(labels))
            if row is None:
                row = encoded[id(labels)] = _row(labels)
            before, after = row
            head = self._heads.get((before, name, len(after)))
            if head is None:
                head = self._head(before, name, len(after))
            heads.append(head)
            rows.append(after)
            longest = max(longest, len(head) + len(after))

        columns = [series.column for series in mapped.series]
        pick = _picker(columns, len(shape))
        texts = sum(len(before) + len(after) for before, after in encoded.values())
        return ShapePrefixes(
            heads=heads,
            rows=rows,
            names=[series.name for series in mapped.series],
            labels=[series.labels for series in mapped.series],
            columns=range(len(columns)) if pick is None else columns,
            pick=pick,
            doubled=len(mapped.doubled),
            longest=longest,
            memory=_ENTRY_BYTES + _SERIES_BYTES * len(columns) + 3 * texts,
        )

    def _head(self, before: bytes, name: str, after: int) -> bytes:
        """Return tag and length of a series, the labels before its name, and the name."""
        if len(self._heads) >= _MOST_HEADS:  # devices choose names
            self._heads.clear()
        named = before + _label(METRIC_NAME, name)
        length = len(named) + after - len(_SAMPLE_HEAD) + _SAMPLE_BYTES
        head = b"\x0a" + protobuf_fields.varint(length) + named
        self._heads[before, name, after] = head
        return head


def _picker(columns: list[int], width: int) -> Callable[[Any], tuple[bytes, ...]] | None:
    if columns == list(range(width)):
        return None
    if len(columns) > 1:
        return itemgetter(*columns)
    return lambda values: tuple(values[column] for column in columns)


def _row(labels: Labels) -> tuple[bytes, bytes]:
    """Return the labels before the metric's name, and those after it with the sample's head."""
    before = [_label(name, text) for name, text in labels if name < METRIC_NAME]
    after = [_label(name, text) for name, text in labels if name > METRIC_NAME]
    return b"".join(before), b"".join(after) + _SAMPLE_HEAD


def _label(name: str, text: str) -> bytes:
    content = protobuf_fields.text(0x0A, name) + protobuf_fields.text(0x12, text)
    return protobuf_fields.delimited(0x0A, content)
