"""Remote write 2.0 (rc.4): a table of symbols, series that refer to it, kinds, counter starts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from poller.domain.metrics.outside_labels import METRIC_NAME
from poller.domain.metrics.reading import Kind, Labels
from poller.sinks.outside_series import SeriesMapper
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
_SERIES: Final = 0x2A


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


def encode(pieces: Iterable[Piece], mapper: SeriesMapper) -> bytes:
    """Return the request before compression. A bridge stands before the sample of its series."""
    symbols = _Symbols()
    series_fields: list[bytes] = []
    for piece in pieces:
        _add_series(series_fields, piece, symbols, mapper)
    return symbols.encoded() + b"".join(series_fields)


def _add_series(fields: list[bytes], piece: Piece, symbols: _Symbols, mapper: SeriesMapper) -> None:
    poll = piece.poll
    sample = poll.sample
    shape = sample.readings.series
    bridges: dict[int, list[bytes]] = {}
    for position, bridge in piece.bridges if poll.bridges else ():
        added = _sample(sample_values.packed(bridge.value), _instant(bridge.at_ms), b"")
        bridges.setdefault(position, []).append(added)

    rows: dict[int, tuple[bytes, bytes]] = {}
    instant = _instant(sample.at_ms)
    mapped = mapper.outside(sample.target, shape).series
    for position in range(piece.first, piece.end):
        column, name, labels = mapped[position]
        row = rows.get(id(labels))
        if row is None:
            row = rows[id(labels)] = _row(labels, symbols)
        references = row[0] + symbols.pair(METRIC_NAME, name) + row[1]
        start_ms = poll.starts.get(column)
        start = b"" if start_ms is None else b"\x18" + protobuf_fields.instant(start_ms)
        content = b"".join(
            (
                protobuf_fields.delimited(0x0A, references),
                *bridges.get(position, ()),
                _sample(poll.values[position], instant, start),
                _KINDS[shape.series[column].kind],
            )
        )
        fields.append(protobuf_fields.delimited(_SERIES, content))


def _row(labels: Labels, symbols: _Symbols) -> tuple[bytes, bytes]:
    """Return the references of labels that sort before and after the metric's name."""
    before = [symbols.pair(name, text) for name, text in labels if name < METRIC_NAME]
    after = [symbols.pair(name, text) for name, text in labels if name > METRIC_NAME]
    return b"".join(before), b"".join(after)


def _instant(at_ms: int) -> bytes:
    return b"\x10" + protobuf_fields.instant(at_ms)


def _sample(value: bytes, instant: bytes, start: bytes) -> bytes:
    return protobuf_fields.delimited(0x12, b"\x09" + value + instant + start)
