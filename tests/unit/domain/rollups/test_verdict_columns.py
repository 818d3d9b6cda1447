"""Verdicts of whole columns are those of the scalar engine, whatever happened to the counter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poller.domain.metrics import rates
from poller.domain.metrics.counters import Rate
from poller.domain.metrics.rates import Poll, RateQuery
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet
from poller.domain.rollups import verdict_columns
from poller.domain.rollups.counter_samples import CounterSamples, counter_samples
from poller.domain.rollups.sample_columns import LinedUpPolls, SeriesRef
from poller.domain.rollups.verdict_columns import GAP, OK
from tests.unit.domain.rollups.history_polls import MINUTE, START, series, shaped

NAN = math.nan


def _shape(index: int, missing: tuple[str, ...] = ()) -> SeriesSet:
    rows = [
        Series("sysUpTime", (), Kind.GAUGE),
        series("ifInOctets", Kind.COUNTER, 32, index),
        series("ifHCInOctets", Kind.COUNTER, 64, index),
        series("ifInErrors", Kind.COUNTER, 32, index),
        series("odd_total", Kind.COUNTER, 0, index),
        series("ifHighSpeed", index=index),
        series("ifConnectorPresent", index=index),
        series("ifCounterDiscontinuityTime", index=index),
    ]
    return SeriesSet(tuple(row for row in rows if row.name not in missing))


#: The same interface: as it was, numbered anew, with less evidence, with fewer counters.
SHAPES = (
    _shape(1),
    _shape(7),
    _shape(1, ("sysUpTime", "ifHighSpeed")),
    _shape(1, ("ifInOctets", "ifCounterDiscontinuityTime")),
)
STEPS_MS = (1, 900, 30_000, MINUTE, MINUTE, MINUTE, 61_003, 149_000, 151_000, 86_400_000 * 9)
GROWTH = (0, 1, 9_000, 40_000_000, 900_000_000, 2**31, 2**33, 2.5)


class Happening(NamedTuple):
    """Between two polls: how long it took, what the counter and its evidence did."""

    after_ms: int
    counter: str
    growth: float
    uptime: str = "goes on"
    speed: float = 1000.0
    connector: float = 1.0
    discontinuity: float = 0.0
    shape: int = 0


happenings = st.builds(
    Happening,
    after_ms=st.sampled_from(STEPS_MS),
    counter=st.sampled_from(("grows",) * 5 + ("falls", "is low once", "is no number", "is full")),
    growth=st.sampled_from(GROWTH),
    uptime=st.sampled_from(
        ("goes on",) * 6 + ("restarts", "jumps", "is missing", "stands", "wraps")
    ),
    speed=st.sampled_from((1000.0, 100.0, 10.0, 0.0, NAN)),
    connector=st.sampled_from((1.0, 1.0, 2.0)),
    discontinuity=st.sampled_from((0.0, 0.0, 0.0, 5.0, NAN)),
    shape=st.sampled_from((0, 0, 0, 1, 2, 3)),
)


def _polls(story: list[Happening]) -> list[Poll]:
    at_ms, counter, uptime_cs = START, 4_000_000_000.0, 8_640_000.0
    polls = []
    for happening in story:
        at_ms += happening.after_ms
        counter = _next_counter(counter, happening)
        uptime_cs = _next_uptime(uptime_cs, happening)
        sample = {"is low once": 0.0, "is no number": NAN}.get(happening.counter, counter)
        known = {
            "sysUpTime": NAN if happening.uptime == "is missing" else uptime_cs,
            "ifInOctets": sample % 2**32,
            "ifHCInOctets": sample,
            "ifInErrors": sample % 2**32 // 1024,
            "odd_total": sample / 3,
            "ifHighSpeed": happening.speed,
            "ifConnectorPresent": happening.connector,
            "ifCounterDiscontinuityTime": happening.discontinuity,
        }
        shape = SHAPES[happening.shape]
        polls.append((at_ms, ReadingSet(shape, [known[row.name] for row in shape.series])))
    return polls


def _next_counter(counter: float, happening: Happening) -> float:
    if happening.counter == "falls":
        return happening.growth
    if happening.counter == "is full":
        return 2.0**64 - 4096 if counter < 2**63 else 4096.0
    return counter + happening.growth


def _next_uptime(uptime_cs: float, happening: Happening) -> float:
    elapsed = happening.after_ms / 10
    changed = {"restarts": min(elapsed, 900.0), "stands": uptime_cs, "wraps": 2.0**32 - 100}
    ahead = uptime_cs + elapsed + (90_000 if happening.uptime == "jumps" else 0)
    return changed.get(happening.uptime, ahead % 2**32)


class Step(NamedTuple):
    """The end of a step, its verdict and the growth; whether the growth is a share of two steps."""

    at_ms: int
    code: int
    growth: float
    is_share: bool = False


def _by_columns(samples: CounterSamples, interval_ms: int) -> dict[tuple[int, int], Step]:
    """The steps of the columns, by counter and the instant of the end."""
    found = {}
    for steps in verdict_columns.judge(samples, interval_ms):
        for row, counter in enumerate(steps.counters):
            for step, at_ms in enumerate(steps.at_ms[1:].tolist()):
                growth = float(steps.growth[row, step])
                found[int(counter), at_ms] = Step(at_ms, int(steps.codes[row, step]), growth)
    return found


def _by_scalars(line: Sequence[Rate]) -> list[Step]:
    """The same of the scalar engine. A wrong sample makes an average of the steps beside it."""
    expected: list[Step] = []
    for before, rate in pairwise(line):
        seconds = (rate.at_ms - before.at_ms) / 1000
        per_second = rate.per_second or 0.0
        is_share = rate.per_second is not None and rate.seconds > seconds
        if is_share:
            growth = per_second * (rate.seconds - seconds)
            expected[-1] = Step(before.at_ms, GAP, growth, is_share=True)
        code = verdict_columns.CODES[rate.verdict]
        expected.append(Step(rate.at_ms, code, per_second * seconds, is_share))
    return expected


LOW_ONCE = [
    Happening(MINUTE, "grows", 1),
    Happening(MINUTE, "grows", 9_000),
    Happening(MINUTE, "is low once", 9_000),
    Happening(MINUTE, "grows", 9_000),
    Happening(MINUTE, "grows", 9_000),
]


@settings(max_examples=150, deadline=None)
@given(
    story=st.lists(happenings, min_size=1, max_size=14), interval_ms=st.sampled_from((0, MINUTE))
)
@example(story=LOW_ONCE, interval_ms=MINUTE)
@example(story=[*LOW_ONCE, *LOW_ONCE[2:], *LOW_ONCE[2:]], interval_ms=MINUTE)
def test_columns_have_the_verdicts_of_the_scalar_engine(
    story: list[Happening], interval_ms: int
) -> None:
    """Resets, wraps, gaps, impossible steps, wrong samples, missing evidence, changed shapes."""
    polls = _polls(story)
    samples = counter_samples(LinedUpPolls(shaped(polls)))
    places = {_series(ref): place for place, ref in enumerate(samples.refs)}
    judged = _by_columns(samples, interval_ms)

    for line in rates.compute(polls, RateQuery(interval_ms)).lines:
        for expected in _by_scalars(line.rates):
            found = judged.pop((places[line.series], expected.at_ms))
            assert (line.series.name, found.code) == (line.series.name, expected.code)
            rounding = 0.51 if expected.is_share else 1e-9
            assert found.growth == pytest.approx(expected.growth, rel=1e-9, abs=rounding)
    assert not judged


def _series(ref: SeriesRef) -> Series:
    shape = next(shape for shape in SHAPES if shape.id == ref.shape_id)
    return shape.series[ref.index]


def test_a_low_sample_that_was_wrong_leaves_an_average() -> None:
    """The two steps beside it share the growth, and no count is lost."""
    samples = counter_samples(LinedUpPolls(shaped(_polls(LOW_ONCE))))
    [steps] = verdict_columns.judge(samples, MINUTE)
    octets = [_series(ref).name for ref in samples.refs].index("ifHCInOctets")
    assert steps.codes[octets].tolist() == [OK, GAP, GAP, OK]
    assert steps.growth[octets].sum() == 4 * 9_000
