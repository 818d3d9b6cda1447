"""The messages of remote write by the protobuf library: a second opinion on our encoder.

A message with an unknown field, a label out of order or a doubled label is refused.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

_FIELD = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "string": _FIELD.TYPE_STRING,
    "double": _FIELD.TYPE_DOUBLE,
    "int64": _FIELD.TYPE_INT64,
    "uint32": _FIELD.TYPE_UINT32,
    "int32": _FIELD.TYPE_INT32,  # an enumeration on the wire
}
#: Message -> fields: number, name, type; `*` repeats.
_V1 = {
    "Label": [(1, "name", "string"), (2, "value", "string")],
    "Sample": [(1, "value", "double"), (2, "timestamp", "int64")],
    "TimeSeries": [(1, "labels", "*Label"), (2, "samples", "*Sample")],
    "WriteRequest": [(1, "timeseries", "*TimeSeries")],
}
_V2 = {
    "Sample": [
        (1, "value", "double"),
        (2, "timestamp", "int64"),
        (3, "start_timestamp", "int64"),
    ],
    "Metadata": [(1, "type", "int32"), (3, "help_ref", "uint32"), (4, "unit_ref", "uint32")],
    "TimeSeries": [
        (1, "labels_refs", "*uint32"),
        (2, "samples", "*Sample"),
        (5, "metadata", "Metadata"),
    ],
    "Request": [(4, "symbols", "*string"), (5, "timeseries", "*TimeSeries")],
}

Labels = tuple[tuple[str, str], ...]


class Received(NamedTuple):
    """One sample of a request. `bits` tells one NaN from another."""

    labels: Labels
    at_ms: int
    value: float
    bits: int
    start_ms: int = 0
    kind: int = 0

    @property
    def name(self) -> str:
        return dict(self.labels)["__name__"]


def _message(package: str, messages: dict[str, list[tuple[int, str, str]]], name: str) -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto", package=package, syntax="proto3"
    )
    for message, fields in messages.items():
        described = file.message_type.add(name=message)
        for number, field, kind in fields:
            label = _FIELD.LABEL_REPEATED if kind.startswith("*") else _FIELD.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            added = described.field.add(name=field, number=number, label=label)
            if kind in _TYPES:
                added.type = _TYPES[kind]
            else:
                added.type = _FIELD.TYPE_MESSAGE
                added.type_name = f".{package}.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindMessageTypeByName(f"{package}.{name}")
    return message_factory.GetMessageClass(found)


WriteRequest = _message("prometheus", _V1, "WriteRequest")
Request = _message("io.prometheus.write.v2", _V2, "Request")


def decode(body: bytes, version: str = "1.0", is_compressed: bool = True) -> list[Received]:
    """Return the samples of a request, in order. Raises ValueError or AssertionError."""
    content = bytes(cramjam.snappy.decompress_raw(body)) if is_compressed else body
    return _decode_v2(content) if version == "2.0" else _decode_v1(content)


def _decode_v1(content: bytes) -> list[Received]:
    request = WriteRequest.FromString(content)
    _refuse_unknown(request)
    received = []
    for series in request.timeseries:
        labels = _checked([(label.name, label.value) for label in series.labels])
        assert series.samples, "a series without a sample"
        for sample in series.samples:
            bits = _bits(sample.value)
            received.append(Received(labels, sample.timestamp, sample.value, bits))
    return received


def _decode_v2(content: bytes) -> list[Received]:
    request = Request.FromString(content)
    _refuse_unknown(request)
    assert request.symbols[0] == "", "the first symbol is not empty"
    assert len(set(request.symbols)) == len(request.symbols), "a doubled symbol"
    received = []
    for series in request.timeseries:
        references = list(series.labels_refs)
        assert len(references) % 2 == 0
        texts = [request.symbols[reference] for reference in references]
        labels = _checked(list(zip(texts[0::2], texts[1::2], strict=True)))
        assert series.samples, "a series without a sample"
        for sample in series.samples:
            assert sample.start_timestamp <= sample.timestamp
            received.append(
                Received(
                    labels,
                    sample.timestamp,
                    sample.value,
                    _bits(sample.value),
                    sample.start_timestamp,
                    series.metadata.type,
                )
            )
    return received


def _checked(labels: list[tuple[str, str]]) -> Labels:
    names = [name for name, _ in labels]
    assert names == sorted(set(names)), f"labels out of order or doubled: {names}"
    assert "__name__" in names
    assert all(text for _, text in labels), "an empty label"
    return tuple(labels)


def _refuse_unknown(message: Any) -> None:
    assert not len(UnknownFieldSet(message)), "an unknown field"
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in value if hasattr(value, "__len__") else [value]:
            _refuse_unknown(each)


def _bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]
