"""The record of a round in a spool file. Not pickle: a damaged or foreign file can do no harm.

A record is compressed JSON, followed by packed shapes and by values as float64. A target or a
shape is written in full (defined) once per file; later records of the file refer to it by its key.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple, Protocol, TypeVar

from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack
from poller.domain.record.run import Run
from poller.domain.scheduling.interval import Policy
from poller.sinks.api import Sample

_LENGTH = struct.Struct("<I")
_RUN_FIELDS = Run._fields
_LETTER_FIELDS = tuple(field.name for field in fields(Letter))
_TARGET_FIELDS = tuple(field.name for field in fields(PollTarget))

T = TypeVar("T")


class PackedRound(NamedTuple):
    """A record, and the targets and shapes that it defines, by key."""

    record: bytes
    definitions: Mapping[str, Any] = {}


class Codec(Protocol[T]):
    def pack(self, items: Sequence[T], defined: Container[str]) -> PackedRound:
        """Return the record of a round, without what is already defined.

        Raises ValueError or TypeError.
        """
        ...

    def unpack(self, record: bytes, definitions: dict[str, Any]) -> list[T]:
        """Return the round of a record, and add what the record defines.

        Raises any exception for data that is no record.
        """
        ...


class RunCodec:
    """Ledger rows. A record names their fields, so that another version can read it."""

    def pack(self, items: Sequence[Run], defined: Container[str]) -> PackedRound:
        head = {"fields": _RUN_FIELDS, "runs": items}
        return PackedRound(_join(head))

    def unpack(self, record: bytes, definitions: dict[str, Any]) -> list[Run]:
        head, _ = _split(record)
        runs = []
        for row in head["runs"]:
            pairs = zip(head["fields"], row, strict=True)
            values = _select(pairs, _RUN_FIELDS)
            values["outcome"] = Result(values["outcome"])
            runs.append(Run(**values))
        return runs


class DeadLetterCodec:
    """Dead letters. A record names their fields, so that another version can read it."""

    def pack(self, items: Sequence[Letter], defined: Container[str]) -> PackedRound:
        rows = []
        for letter in items:
            rows.append([getattr(letter, name) for name in _LETTER_FIELDS])

        head = {"fields": _LETTER_FIELDS, "letters": rows}
        return PackedRound(_join(head))

    def unpack(self, record: bytes, definitions: dict[str, Any]) -> list[Letter]:
        head, _ = _split(record)
        letters = []
        for row in head["letters"]:
            pairs = zip(head["fields"], row, strict=True)
            values = _select(pairs, _LETTER_FIELDS)
            if values["reason"]:
                values["reason"] = Reason(values["reason"])
            letters.append(Letter(**values))
        return letters


class SampleCodec:
    """Readings for a sink."""

    def pack(self, items: Sequence[Sample], defined: Container[str]) -> PackedRound:
        targets: dict[str, PollTarget] = {}
        shapes: dict[str, SeriesSet] = {}
        polls: list[tuple[str, int, str]] = []
        values: list[bytes] = []
        for sample in items:
            target = sample.target
            target_key = f"t{target.id}.{target.version}"
            if target_key not in defined:
                targets[target_key] = target

            shape = sample.readings.series
            shape_key = f"s{shape.id}"
            if shape_key not in defined:
                shapes[shape_key] = shape

            polls.append((target_key, sample.at_ms, shape_key))
            values.append(pack(sample.readings.values))

        head: dict[str, Any] = {
            "targets": {key: asdict(target) for key, target in targets.items()},
            "shapes": {key: len(shape.packed) for key, shape in shapes.items()},
            "polls": polls,
        }
        ends = [number for number, sample in enumerate(items) if sample.is_end]
        if ends:
            head["ends"] = ends
        packed_shapes = [shape.packed for shape in shapes.values()]
        record = _join(head, packed_shapes + values)
        return PackedRound(record, {**targets, **shapes})

    def unpack(self, record: bytes, definitions: dict[str, Any]) -> list[Sample]:
        head, blob = _split(record)
        for key, fields_ in head["targets"].items():
            if key not in definitions:
                definitions[key] = _target(fields_)

        offset = 0
        for key, length in head["shapes"].items():
            end = offset + length
            if key not in definitions:
                definitions[key] = SeriesSet.from_packed(blob[offset:end])
            offset = end

        samples = []
        values = unpack(blob[offset:])
        first = 0
        ends = set(head.get("ends", ()))  # the numbers of the polls that are ends
        for number, (target_key, at_ms, shape_key) in enumerate(head["polls"]):
            shape = definitions[shape_key]
            end = first + len(shape)
            readings = ReadingSet(shape, values[first:end])
            samples.append(Sample(definitions[target_key], at_ms, readings, number in ends))
            first = end
        return samples


def _join(head: Mapping[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """Return a record: the length of the compressed JSON, the JSON, and the blobs."""
    text = json.dumps(head, separators=(",", ":"))
    compressed = zlib.compress(text.encode(), 1)
    length = _LENGTH.pack(len(compressed))
    return b"".join([length, compressed, *blobs])


def _split(record: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the JSON object of a record, and the bytes behind it."""
    (length,) = _LENGTH.unpack_from(record)
    end = _LENGTH.size + length
    text = zlib.decompress(record[_LENGTH.size : end])

    head: dict[str, Any] = json.loads(text)
    return head, record[end:]


def _target(values: Mapping[str, Any]) -> PollTarget:
    selected = _select(values.items(), _TARGET_FIELDS)
    selected["tags"] = tuple(selected["tags"])
    selected["siblings"] = tuple(selected.get("siblings", ()))
    selected["policy"] = Policy(selected["policy"])
    return PollTarget(**selected)


def _select(values: Iterable[tuple[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return the values without fields that a newer version added."""
    return {name: value for name, value in values if name in names}
