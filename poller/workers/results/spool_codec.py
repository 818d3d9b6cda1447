"""How is a round written to a spool file, and read again? Not pickle: a damaged or foreign file can do no harm.

A record is compressed JSON followed by the shapes it tells, packed, and the values as float64. What many polls share
(a target, the shape of its readings) is told once per file: `known` is what the file has said so far.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, Protocol, TypeVar

from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack
from poller.domain.record.run import Run
from poller.domain.scheduling.interval import Policy
from poller.sinks.api import Sample

_LENGTH = struct.Struct("<I")
_RUN = Run._fields
_LETTER = tuple(field.name for field in fields(Letter))
_TARGET = tuple(field.name for field in fields(PollTarget))

T = TypeVar("T")


class Codec(Protocol[T]):
    def pack(self, items: Sequence[T], known: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
        """A record, and what it tells for the first time. Raises ValueError or TypeError."""
        ...

    def unpack(self, record: bytes, known: dict[str, Any]) -> list[T]:
        """Reverses it, and adds to what is known. Raises anything for what is no record."""
        ...


class Runs:
    """Rows of the ledger: each names its fields, so that a later version can read them."""

    def pack(
        self, items: Sequence[Run], known: Mapping[str, Any]
    ) -> tuple[bytes, Mapping[str, Any]]:
        return _joined({"fields": _RUN, "runs": items}), {}

    def unpack(self, record: bytes, known: dict[str, Any]) -> list[Run]:
        head, _ = _parted(record)
        found = [_known(zip(head["fields"], row, strict=True), _RUN) for row in head["runs"]]
        return [Run(**{**values, "outcome": Result(values["outcome"])}) for values in found]


class Letters:
    """Dead letters, likewise."""

    def pack(
        self, items: Sequence[Letter], known: Mapping[str, Any]
    ) -> tuple[bytes, Mapping[str, Any]]:
        rows = [[getattr(letter, name) for name in _LETTER] for letter in items]
        return _joined({"fields": _LETTER, "letters": rows}), {}

    def unpack(self, record: bytes, known: dict[str, Any]) -> list[Letter]:
        head, _ = _parted(record)
        found = [_known(zip(head["fields"], row, strict=True), _LETTER) for row in head["letters"]]
        return [
            Letter(**{**values, "reason": values["reason"] and Reason(values["reason"])})
            for values in found
        ]


class Samples:
    """Readings for a sink."""

    def pack(
        self, items: Sequence[Sample], known: Mapping[str, Any]
    ) -> tuple[bytes, Mapping[str, Any]]:
        targets = {key: sample.target for sample in items if (key := _whose(sample)) not in known}
        shapes = {
            key: sample.readings.series for sample in items if (key := _what(sample)) not in known
        }
        head = {
            "targets": {key: asdict(target) for key, target in targets.items()},
            "shapes": {key: len(shape.packed) for key, shape in shapes.items()},
            "polls": [[_whose(sample), sample.at_ms, _what(sample)] for sample in items],
        }
        values = (pack(sample.readings.values) for sample in items)
        return _joined(head, *(shape.packed for shape in shapes.values()), *values), {
            **targets,
            **shapes,
        }

    def unpack(self, record: bytes, known: dict[str, Any]) -> list[Sample]:
        head, blob = _parted(record)
        known.update(
            {key: _target(values) for key, values in head["targets"].items() if key not in known}
        )
        at = 0
        for key, length in head["shapes"].items():
            if key not in known:
                known[key] = SeriesSet.from_packed(blob[at : at + length])
            at += length
        samples, values, start = [], unpack(blob[at:]), 0
        for whose, at_ms, what in head["polls"]:
            shape = known[what]
            end = start + len(shape.series)
            samples.append(Sample(known[whose], at_ms, ReadingSet(shape, values[start:end])))
            start = end
        return samples


def _whose(sample: Sample) -> str:
    return f"t{sample.target.id}.{sample.target.version}"


def _what(sample: Sample) -> str:
    return f"s{sample.readings.series.id}"


def _joined(head: Mapping[str, Any], *blobs: bytes) -> bytes:
    packed = zlib.compress(json.dumps(head, separators=(",", ":")).encode(), 1)
    return b"".join([_LENGTH.pack(len(packed)), packed, *blobs])


def _parted(record: bytes) -> tuple[dict[str, Any], bytes]:
    (length,) = _LENGTH.unpack_from(record)
    end = _LENGTH.size + length
    head: dict[str, Any] = json.loads(zlib.decompress(record[_LENGTH.size : end]))
    return head, record[end:]


def _target(values: Mapping[str, Any]) -> PollTarget:
    known = _known(values.items(), _TARGET)
    return PollTarget(**{**known, "tags": tuple(known["tags"]), "policy": Policy(known["policy"])})


def _known(values: Iterable[tuple[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Without what a newer version added."""
    return {name: value for name, value in values if name in names}
