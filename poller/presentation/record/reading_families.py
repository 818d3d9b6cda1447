"""The readings of many polls as the text of a scrape: OpenMetrics, or the older text format.

A scrape has all lines of a metric in one piece. The lines are collected in one file, which is in
memory while it is small, with the places of each metric: a scrape of millions of series takes
little memory and one file, however many metrics the devices have.
"""

from __future__ import annotations

import enum
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite, isnan
from typing import IO, NamedTuple

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import outside_labels
from poller.domain.metrics.reading import Kind, Labels, Series

#: A larger scrape goes to disk.
MEMORY_BYTES = 8 * 1024 * 1024
#: Lines in memory that are not in the file yet; few flushes make few pieces of a metric.
WAITING_LINES = 65_536
#: Bytes that are sent at a time.
CHUNK_BYTES = 256 * 1024
#: Texts of labels that are kept from one scrape to the next, in bytes.
KEPT_BYTES = 128 * 1024 * 1024
#: Memory of a kept text beside its characters, and of a kept target beside its texts.
_TEXT_BYTES = 60
_TARGET_BYTES = 300
#: Layouts that targets share; a fleet has about as many as it has models of devices.
MOST_LAYOUTS = 2_000
#: The text of a target that no scrape needed for this long makes room for others.
UNUSED_S = 900.0

_ESCAPED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_TOTAL = "_total"


class Format(enum.Enum):
    """A format of a scrape, by its content type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Layout(NamedTuple):
    """The metric of every series of a poll, and which labels it has. Like devices share it."""

    metrics: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rows: tuple[int, ...]  # of each series: the index of its labels


class Lines(NamedTuple):
    """The series of a target: the text of each line before its value is metric + labels."""

    layout: Layout
    labels: tuple[str, ...]  # texts such as `{device="sw-1",ifName="eth0"} `

    @property
    def size(self) -> int:
        """About the bytes that they take in memory."""
        return _TARGET_BYTES + sum(len(text) + _TEXT_BYTES for text in self.labels)


class _Kept(NamedTuple):
    version: int
    shape_id: int
    used_mono: float
    lines: Lines


class LineCache:
    """The lines of targets, up to a size. For one thread at a time.

    A cache that is full keeps what it has: scrapes read all targets in turn, so the least recently
    used one would be needed next.
    """

    def __init__(self, room: int = KEPT_BYTES) -> None:
        self._room = room
        self._by_target: OrderedDict[int, _Kept] = OrderedDict()
        self._layouts: dict[Layout, Layout] = {}

    def find(self, target: PollTarget, shape_id: int, now_mono: float) -> Lines | None:
        """Return the lines of a target with this shape; None if they have to be made."""
        kept = self._by_target.pop(target.id, None)
        if kept is None:
            return None
        if (kept.version, kept.shape_id) != (target.version, shape_id):
            self._room += kept.lines.size
            return None
        self._by_target[target.id] = kept._replace(used_mono=now_mono)
        return kept.lines

    def make(
        self, target: PollTarget, shape_id: int, series: Sequence[Series], now_mono: float
    ) -> Lines:
        """Return the lines of a target, which are kept if there is room."""
        made = _lines(target, series)
        lines = Lines(self._shared(made.layout), made.labels)
        self._make_room(lines.size, now_mono)
        if lines.size <= self._room:
            self._room -= lines.size
            self._by_target[target.id] = _Kept(target.version, shape_id, now_mono, lines)
        return lines

    def _shared(self, layout: Layout) -> Layout:
        """Return the layout of an earlier target that equals this one, if there is any."""
        if len(self._layouts) >= MOST_LAYOUTS:
            self._layouts.clear()
        return self._layouts.setdefault(layout, layout)

    def _make_room(self, wanted: int, now_mono: float) -> None:
        while wanted > self._room and self._by_target:
            target_id, oldest = next(iter(self._by_target.items()))
            if oldest.used_mono > now_mono - UNUSED_S:
                return
            del self._by_target[target_id]
            self._room += oldest.lines.size


class Families:
    """The lines of one scrape, metric by metric. Close it: it may have a file."""

    def __init__(self, form: Format) -> None:
        self._form = form
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115
        self._size = 0
        self._pieces: dict[str, list[tuple[int, int]]] = {}  # offsets and lengths, by metric
        self._lines_waiting = 0
        self._kinds: dict[str, Kind] = {}
        self._texts: dict[str, str] = {}
        self._waiting: dict[str, list[str]] = {}  # lines that are in no file yet

    def add(self, lines: Lines, values: Iterable[float]) -> None:
        """Add the values of a poll."""
        layout, labels = lines
        waiting = self._waiting
        for metric, row, value in zip(layout.metrics, layout.rows, values, strict=True):
            texts = waiting.get(metric)
            if texts is None:
                texts = waiting[metric] = []
                kind = layout.kinds[layout.metrics.index(metric)]
                self._kinds.setdefault(metric, kind)
            texts.append(
                f"{metric}{labels[row]}{value if isfinite(value) else _no_number(value)}\n"
            )
        self._lines_waiting += len(layout.metrics)
        if self._lines_waiting >= WAITING_LINES:
            self.flush()

    def flush(self) -> None:
        """Write what was added to the file."""
        for metric, texts in self._waiting.items():
            piece = "".join(texts).encode()
            self._file.write(piece)
            self._pieces.setdefault(metric, []).append((self._size, len(piece)))
            self._size += len(piece)
        self._waiting.clear()
        self._lines_waiting = 0

    def describe(self, metric: str, text: str) -> None:
        """Add the help text of a metric."""
        self._texts[metric] = text

    def chunks(self) -> Iterator[bytes]:
        """Yield the scrape in pieces."""
        self.flush()
        chunk = bytearray()
        for part in self._parts():
            chunk += part
            if len(chunk) >= CHUNK_BYTES:
                yield bytes(chunk)
                chunk.clear()
        if self._form is Format.OPENMETRICS:
            chunk += b"# EOF\n"
        if chunk:
            yield bytes(chunk)

    def close(self) -> None:
        self._file.close()

    def _parts(self) -> Iterator[bytes]:
        """Yield the head and all pieces of each metric, none longer than a chunk."""
        for metric in sorted(self._pieces):
            yield self._head(metric).encode()
            for offset, length in self._pieces[metric]:
                self._file.seek(offset)
                for _ in range(0, length, CHUNK_BYTES):
                    left = offset + length - self._file.tell()
                    yield self._file.read(min(CHUNK_BYTES, left))

    def _head(self, metric: str) -> str:
        name, kind = _described(metric, self._kinds, self._form)
        text = self._texts.get(metric)
        help_line = f"# HELP {name} {text}\n" if text else ""
        return f"{help_line}# TYPE {name} {kind}\n"


def format_of(accept: str) -> Format:
    """Return the format for the header `Accept` of a scrape."""
    return Format.OPENMETRICS if "application/openmetrics-text" in accept else Format.TEXT


def gauge(metric: str, labels: Labels) -> Lines:
    """Return the line of one gauge."""
    return Lines(Layout((metric,), (Kind.GAUGE,), (0,)), (_labels_text(labels),))


def _no_number(value: float) -> str:
    """Return a value that is no finite number as both formats write it."""
    if isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else "-Inf"


def _lines(target: PollTarget, series: Sequence[Series]) -> Lines:
    """Return the lines of a poll. Columns of a table have the same labels, and share the text."""
    added = outside_labels.target_labels(target)
    rows: dict[Labels, int] = {}
    for each in series:
        rows.setdefault(each.labels, len(rows))
    names = {name: outside_labels.valid_metric_name(name) for name in {s.name for s in series}}
    layout = Layout(
        metrics=tuple(names[each.name] for each in series),
        kinds=tuple(each.kind for each in series),
        rows=tuple(rows[each.labels] for each in series),
    )
    texts = tuple(_labels_text(outside_labels.joined(labels, added).labels) for labels in rows)
    return Lines(layout, texts)


def _labels_text(labels: Labels) -> str:
    """Return the labels as both formats write them, with the blank before the value."""
    pairs = ",".join(f'{label}="{text.translate(_ESCAPED)}"' for label, text in labels)
    return f"{{{pairs}}} " if pairs else " "


def _described(metric: str, kinds: Mapping[str, Kind], form: Format) -> tuple[str, str]:
    """Return name and type of a metric in its TYPE line.

    OpenMetrics takes only what ends in `_total` as a counter; of others the type is unknown there.
    """
    if kinds[metric] is not Kind.COUNTER:
        return metric, "gauge"
    if form is Format.TEXT:
        return metric, "counter"
    name = metric.removesuffix(_TOTAL)
    if name == metric or name in kinds:
        return metric, "unknown"
    return name, "counter"
