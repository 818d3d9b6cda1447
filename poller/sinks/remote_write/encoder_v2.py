"""Remote write 2.0 (rc.4): a table of symbols, series that refer to it, kinds, counter starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from poller.domain.metrics.outside_labels import METRIC_NAME
from poller.domain.metrics.reading import Kind, Labels
from poller.sinks.remote_write import protobuf_fields, sample_values
from poller.sinks.remote_write.outgoing_poll import Piece

HEADERS: Final = (
    ("Content-Type", "application/x-protobuf;proto=io.prometheus.write.v2.Request"),
    ("Content-Encoding", "snappy"),
    ("X-Prometheus-Remote-Write-Version", "2.0.0"),
)
#: TimeSeries.metadata with Metadata.type: COUNTER, GAUGE, INFO.
_KINDS: Final = {
    Kind.COUNTER: b"\x2a\x02\x08\x01",
    Kind.GAUGE: b"\x2a\x02\x08\x02",
    Kind.INFO: b"\x2a\x02\x08\x06",
}
_SYMBOL: Final = 0x22
_SERIES: Final = b"\x2a"
#: TimeSeries.samples with the length of a sample, and the tag of its value.
_SAMPLE: Final = b"\x12\x10\x09"
_SAMPLE_WITH_START: Final = b"\x12\x17\x09"
#: Lengths as varints: nearly all lengths of a series are small.
_LENGTHS: Final = tuple(protobuf_fields.varint(length) for length in range(1024))


class _Symbols:
    """The table of symbols of one request. The first symbol is empty, as the protocol demands."""

    def __init__(self) -> None:
        self._references: dict[str, bytes] = {"": b"\x00"}

    def pair(self, name: str, text: str) -> bytes:
        """Return the references of a label."""
        return self._reference(name) + self._reference(text)

    def _reference(self, text: str) -> bytes:
        reference = self._references.get(text)
        if reference is None:
            reference = protobuf_fields.varint(len(self._references))
            self._references[text] = reference
        return reference

    def encoded(self) -> bytes:
        return b"".join(protobuf_fields.text(_SYMBOL, text) for text in self._references)


def encode(pieces: Iterable[Piece]) -> bytes:
    """Return the request before compression. A bridge stands before the sample of its series."""
    symbols = _Symbols()
    series_fields: list[bytes] = []
    for piece in pieces:
        _add_series(series_fields, piece, symbols)
    return symbols.encoded() + b"".join(series_fields)


def _add_series(fields: list[bytes], piece: Piece, symbols: _Symbols) -> None:
    poll = piece.poll
    shape = poll.shape
    kinds = poll.sample.readings.series.kinds
    bridges: dict[int, bytes] = {}
    for position, bridge in piece.bridges if poll.bridges else ():
        added = _SAMPLE + sample_values.packed(bridge.value) + _tail(bridge.at_ms)
        bridges[position] = bridges.get(position, b"") + added

    rows: dict[int, tuple[bytes, bytes]] = {}
    names: dict[str, bytes] = {}
    tails: dict[int, bytes] = {}
    for position in range(piece.first, piece.end):
        labels = shape.labels[position]
        row = rows.get(id(labels))
        if row is None:
            row = rows[id(labels)] = _row(labels, symbols)
        name = shape.names[position]
        named = names.get(name)
        if named is None:
            named = names[name] = symbols.pair(METRIC_NAME, name)

        column = shape.columns[position]
        start_ms = poll.starts.get(column, 0)
        if start_ms not in tails:
            tails[start_ms] = _tail(poll.sample.at_ms, start_ms)
        references = row[0] + named + row[1]
        content = b"".join(
            (
                b"\x0a",
                _length(references),
                references,
                bridges.get(position, b""),
                _SAMPLE_WITH_START if start_ms else _SAMPLE,
                poll.values[position],
                tails[start_ms],
                _KINDS[kinds[column]],
            )
        )
        fields += (_SERIES, _length(content), content)


def _row(labels: Labels, symbols: _Symbols) -> tuple[bytes, bytes]:
    """Return the references of labels that sort before and after the metric's name."""
    before = [symbols.pair(name, text) for name, text in labels if name < METRIC_NAME]
    after = [symbols.pair(name, text) for name, text in labels if name > METRIC_NAME]
    return b"".join(before), b"".join(after)


def _tail(at_ms: int, start_ms: int = 0) -> bytes:
    """Return the instant of a sample, and the start of its counter if it is known."""
    start = b"\x18" + protobuf_fields.instant(start_ms) if start_ms else b""
    return b"\x10" + protobuf_fields.instant(at_ms) + start


def _length(content: bytes) -> bytes:
    length = len(content)
    return _LENGTHS[length] if length < len(_LENGTHS) else protobuf_fields.varint(length)
