"""A round is read from its record unchanged; targets and shapes are written once per file."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet, pack
from poller.domain.record.run import Run
from poller.domain.scheduling.interval import Policy
from poller.sinks.api import Sample
from poller.workers.results import spool_codec

texts = st.text(max_size=20)
whole = st.integers(-(2**63), 2**63 - 1)
a_run = st.builds(
    Run,
    whole,
    whole,
    st.sampled_from(Result),
    st.integers(1, 9),
    texts,
    texts,
    whole,
    whole,
    st.integers(0, 10**6),
    texts,
    texts,
)
a_target = st.builds(
    PollTarget,
    id=st.integers(1, 3),
    version=st.just(1),
    name=texts,
    device_id=whole,
    device=texts,
    address=texts,
    site=texts,
    collector=texts,
    interval_ms=whole,
    timeout_ms=whole,
    options=st.dictionaries(
        texts, st.one_of(texts, st.booleans(), st.lists(whole, max_size=2)), max_size=2
    ),
    tags=st.lists(texts, max_size=2).map(tuple),
    credential_id=st.one_of(st.none(), whole),
    policy=st.sampled_from(Policy),
    min_ms=st.one_of(st.none(), whole),
    staleness=st.one_of(st.none(), texts),
)
labels = st.dictionaries(texts, texts, max_size=2).map(lambda made: tuple(sorted(made.items())))
a_series = st.builds(Series, texts, labels, st.sampled_from(Kind))
a_reading_set = st.lists(st.tuples(a_series, st.floats()), max_size=4).map(
    lambda pairs: ReadingSet(SeriesSet(tuple(s for s, _ in pairs)), [v for _, v in pairs])
)


def one_target_each(samples: list[Sample]) -> list[Sample]:
    """Give all samples of one target id the same target: a version has one content."""
    targets: dict[int, PollTarget] = {}
    return [replace(s, target=targets.setdefault(s.target.id, s.target)) for s in samples]


some_samples = st.lists(
    st.builds(Sample, a_target, whole, a_reading_set, st.booleans()), max_size=5
).map(one_target_each)


def facts(samples: list[Sample]) -> list[tuple[Any, ...]]:
    """Return comparable values: NaN is not equal to itself, its bytes are."""
    return [
        (s.target, s.at_ms, s.readings.series, pack(s.readings.values), s.is_end) for s in samples
    ]


@given(st.lists(a_run, max_size=5))
def test_runs_are_read_unchanged(runs: list[Run]) -> None:
    """Every field survives, with any text."""
    record, definitions = spool_codec.RunCodec().pack(runs, ())
    assert spool_codec.RunCodec().unpack(record, {}) == runs
    assert list(definitions) == []


@given(st.lists(some_samples, max_size=4))
def test_readings_are_read_unchanged(file: list[list[Sample]]) -> None:
    """An earlier record of the file may define their target and shape."""
    flat = one_target_each([sample for one in file for sample in one])
    codec = spool_codec.SampleCodec()
    defined: set[str] = set()
    definitions: dict[str, Any] = {}
    for one in file:
        samples = flat[: len(one)]
        flat = flat[len(one) :]
        record, new = codec.pack(samples, defined)
        defined.update(new)
        assert facts(codec.unpack(record, definitions)) == facts(samples)


def test_a_target_and_its_shape_are_written_once() -> None:
    """The record of the second poll has its values and little more."""
    shape = SeriesSet(
        tuple(Series(f"metric_{n}", (("if", str(n)),), Kind.GAUGE) for n in range(160))
    )
    target = PollTarget(7, 1, "fast", 3, "sw1", "127.0.0.1", "ams", "snmp", 60_000, 5_000)
    poll = [Sample(target, 1_000, ReadingSet(shape, [float(n) for n in range(160)]))]
    first, definitions = spool_codec.SampleCodec().pack(poll, ())
    again, _ = spool_codec.SampleCodec().pack(poll, set(definitions))
    assert len(again) < 160 * 8 + 100 < len(first)
    with pytest.raises(KeyError):
        spool_codec.SampleCodec().unpack(again, {})


def test_a_round_without_ends_is_packed_as_before_there_were_ends() -> None:
    """Files of older workers have no ends, and older workers can read files without ends."""
    target = PollTarget(7, 1, "fast", 3, "sw1", "127.0.0.1", "ams", "snmp", 60_000, 5_000)
    poll = Sample(target, 1_000, ReadingSet(SeriesSet((Series("up", (), Kind.GAUGE),)), [1.0]))
    record, _ = spool_codec.SampleCodec().pack([poll], ())
    length = int.from_bytes(record[:4], "little")
    head = json.loads(zlib.decompress(record[4 : 4 + length]))
    assert set(head) == {"targets", "shapes", "polls"}


def test_a_field_of_a_newer_version_is_ignored() -> None:
    """A worker that was downgraded reads the files of the newer version."""
    record, _ = spool_codec.RunCodec().pack([Run(1, 2, Result.OK)], ())
    head = json.loads(zlib.decompress(record[4:]))
    head["fields"].append("mood")
    head["runs"][0].append("good")
    packed = zlib.compress(json.dumps(head).encode())
    assert spool_codec.RunCodec().unpack(len(packed).to_bytes(4, "little") + packed, {}) == [
        Run(1, 2, Result.OK)
    ]
