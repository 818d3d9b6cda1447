"""Series over a range, on both databases: raw rates, roll-ups and what lies between agree."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy.engine import Engine

from poller.db.history import compaction, polls_of_span, rollup_pass
from poller.db.history.rollups import Kept
from poller.db.history.series_of_range import SeriesReader
from poller.db.inventory import devices, targets
from poller.db.inventory.targets import Target
from poller.db.record.stored_readings import Stored, Writer
from poller.domain.history.resolution import KeptSpans, Resolution
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics import rates
from poller.domain.metrics.rates import RateQuery
from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series
from poller.domain.series import series_plan
from poller.domain.series.series_line import PointVerdict, SeriesLine
from poller.domain.series.series_plan import Range

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
START = 20_000 * DAY
NOW = START + 3 * DAY
#: Minutes without polls, and the first minute after a reboot.
GAP = range(400, 430)
REBOOT = 700
PER_MINUTE = 6_000


@pytest.fixture
def target(engine: Engine) -> Target:
    """A target with two days of polls: a gap and a reboot on the first; compacted, rolled up."""
    devices.add(engine, DeviceDraft("sw1", address="192.0.2.1"), [TargetDraft(collector="snmp")])
    found = targets.show(engine, "sw1", "snmp")
    polls = [poll(found.id, minute) for minute in range(2 * 1440) if minute not in GAP]
    Writer(engine).write(polls, NOW)
    until_mono = time.monotonic() + 60
    compaction.compact(engine, NOW, lambda _: None, until_mono)
    rollup_pass.roll_up(engine, NOW, Kept(), lambda _: None, until_mono)
    return found


def poll(target_id: int, minute: int) -> Stored:
    counted = minute if minute < REBOOT else minute - REBOOT
    port = {"ifIndex": "1", "ifName": "eth0"}
    readings = ReadingSet.of(
        [
            Reading("sysUpTime", counted * 6_000 + (10**6 if minute < REBOOT else 0)),
            Reading("ifHCInOctets", counted * PER_MINUTE, port, Kind.COUNTER, 64),
            Reading("ifOperStatus", 2.0 if minute % 60 == 30 else 1.0, port),
            Reading("temperature", float(20 + minute % 2)),
        ]
    )
    return Stored(target_id, START + minute * MINUTE, readings)


def read(
    engine: Engine,
    target: Target,
    asked: Range,
    metric: str = "ifHCInOctets",
    kept: KeptSpans = KeptSpans(35 * DAY, 400 * DAY, 730 * DAY),
) -> tuple[Resolution, list[SeriesLine]]:
    plan = series_plan.plan(asked, target.interval_ms, kept, NOW)
    selects: Callable[[Series], bool] = lambda series: series.name == metric  # noqa: E731
    return plan.resolution, list(SeriesReader(engine, plan, selects).lines(target))


def test_raw_rates_are_those_of_the_verdict_engine(engine: Engine, target: Target) -> None:
    """Every poll of a range with a gap and a reboot has the rate and the verdict of the engine."""
    asked = Range(START + 380 * MINUTE, START + 720 * MINUTE)
    resolution, [line] = read(engine, target, asked)
    assert resolution is Resolution.RAW

    stored = polls_of_span.between(engine, target.id, asked.start_ms - MINUTE, asked.end_ms)
    query = RateQuery(
        target.interval_ms,
        selects=lambda each: each.name == "ifHCInOctets",
        since_ms=asked.start_ms,
    )
    polls = [(each.at_ms, each.readings) for each in stored]
    [expected] = rates.compute(polls, query).lines
    assert line.points.at_ms.tolist() == [rate.at_ms for rate in expected.rates]
    assert [str(verdict) for verdict in line.points.verdicts] == [
        rate.verdict.value for rate in expected.rates
    ]
    found = [None if np.isnan(value) else value for value in line.points.value]
    assert found == pytest.approx([rate.per_second for rate in expected.rates])
    assert {"ok", "gap", "reset"} == set(map(str, line.points.verdicts))


@pytest.mark.parametrize("step", [5 * MINUTE, 15 * MINUTE, HOUR, 7 * HOUR])
def test_every_step_has_the_same_total(engine: Engine, target: Target, step: int) -> None:
    """Growth, time with a rate and extremes of two days are the same in every form of history."""
    asked = Range(START, START + 2 * DAY, step)
    _, [line] = read(engine, target, asked)
    polls = 2 * 1440 - 1 - 1  # steps; that of the reboot has no rate
    assert line.total() == pytest.approx(polls * PER_MINUTE, abs=2)
    assert line.mean() == pytest.approx(PER_MINUTE / 60)
    assert line.highest() == pytest.approx(PER_MINUTE / 60, rel=0.002)
    assert int(line.points.averaged_ms.sum()) == (len(GAP) + 1) * MINUTE
    known_ms = int(line.points.known_ms.sum())
    assert known_ms == (polls - len(GAP) - 1) * MINUTE
    assert line.points.verdicts.count(PointVerdict.RESET) == 1


def test_polls_beyond_the_points_are_rolled_up(engine: Engine, target: Target) -> None:
    """Without roll-ups a long range of raw polls keeps its total, its gap and its reset."""
    kept = KeptSpans(35 * DAY, 0, 0)
    resolution, [line] = read(engine, target, Range(START, START + 2 * DAY), kept=kept)
    assert resolution is Resolution.RAW
    assert len(line.points.at_ms) <= 1_500
    assert line.total() == pytest.approx((2 * 1440 - 2) * PER_MINUTE, abs=2)
    assert PointVerdict.RESET in line.points.verdicts
    assert PointVerdict.GAP in line.points.verdicts


def test_gauges_and_states_have_values(engine: Engine, target: Target) -> None:
    """A gauge has its mean and extremes; a state the number that lasted longest."""
    asked = Range(START + DAY, START + 2 * DAY, HOUR)
    _, [gauge] = read(engine, target, asked, "temperature")
    assert gauge.mean() == pytest.approx(20.5, abs=0.01)
    assert (gauge.lowest(), gauge.highest()) == (20.0, 21.0)
    _, [state] = read(engine, target, asked, "ifOperStatus")
    assert set(state.points.value.tolist()) == {1.0}
    assert set(state.points.high.tolist()) == {2.0}
    assert state.mean() is None


def test_a_range_that_is_not_rolled_up_yet_is_whole(engine: Engine, target: Target) -> None:
    """Polls of today are in the answer, in the same buckets."""
    polls = [poll(target.id, minute) for minute in range(2 * 1440, 2 * 1440 + 60)]
    Writer(engine).write(polls, NOW)
    asked = Range(START + 2 * DAY, START + 2 * DAY + HOUR, 5 * MINUTE)
    resolution, [line] = read(engine, target, asked)
    assert resolution is Resolution.FIVE_MINUTES
    assert line.points.value.tolist() == pytest.approx([PER_MINUTE / 60] * 12)
    assert line.known_share() == pytest.approx(59 / 60)


def test_a_range_without_polls_is_unknown(engine: Engine, target: Target) -> None:
    """A range before the first poll has no line."""
    assert read(engine, target, Range(START - 3 * DAY, START - 2 * DAY, HOUR))[1] == []
