"""How long a picture of one interface takes, from a database of many device-days.

The days are written by the codecs, not polled: some believable days of a device, again and again.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.engine import Engine

from benchmarks import believable_day, progress, quantile
from benchmarks.believable_day import Day
from benchmarks.compaction_cost import START_MS
from benchmarks.section import Figure
from poller.db import bulk
from poller.db import engine as sql
from poller.db.history import partitions
from poller.db.history.series_of_range import SeriesReader
from poller.db.inventory import devices, targets
from poller.db.inventory.targets import Target
from poller.db.tables import history_1h, history_5m, history_blocks, series_sets
from poller.domain.history import block_codec
from poller.domain.history.block import Block, Segment
from poller.domain.history.resolution import KeptSpans
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.metrics.reading import SeriesSet
from poller.domain.rollups import day_rollup, rollup, rollup_codec
from poller.domain.rollups.rollup import Rollup
from poller.domain.rollups.sample_columns import ShapedPolls
from poller.domain.rollups.touched_days import DAY_MS
from poller.domain.series import series_plan
from poller.domain.series.series_plan import Range
from poller.presentation.history import series_picture
from poller.presentation.history.series_picture import NamedLine
from poller.service.history.series_listing import SeriesQuestion

#: Days that raw polls are kept, and days of a device that differ.
RAW_DAYS = 35
DIFFERENT_DAYS = 4
_KEPT = KeptSpans(RAW_DAYS * DAY_MS, 400 * DAY_MS, 730 * DAY_MS)
_POLLS_OF_BLOCK = 60
#: Pictures of each range.
PICTURES = 40
_RollupRow = tuple[int, int, bytes]
_BlockRow = tuple[int, int, int, int, bytes]
RANGES = {"24 h": 1, "30 d": 30, "400 d": 400}


@dataclass(frozen=True, slots=True)
class Past:
    """A number of devices, with a number of days behind each."""

    devices: int
    days: int

    @property
    def now_ms(self) -> int:
        return START_MS + self.days * DAY_MS


def drawn(engine: Engine, past: Past, shape: SeriesSet, first: Sequence[float]) -> Iterator[Figure]:
    """Fill the database, then draw random interfaces. Yields the 95th percentile of each range."""
    name = engine.dialect.name
    found = _fill(engine, past, shape, first)
    ports = sorted({dict(series.labels).get("ifName", "") for series in shape.series} - {""})
    rng = random.Random(18)
    for text, days in RANGES.items():
        took_ms: Counter[int] = Counter()
        for _ in range(PICTURES):
            target, port = rng.choice(found), rng.choice(ports)
            began_s = time.perf_counter()
            _draw(engine, target, port, Range(past.now_ms - days * DAY_MS, past.now_ms))
            took_ms[round((time.perf_counter() - began_s) * 1000)] += 1
        label = f"{name}, a picture of {text}, p95"
        yield Figure(f"{name}_draw_{days}d_ms", label, quantile.of(took_ms, 0.95), "ms", below=100)


def _draw(engine: Engine, target: Target, port: str, wanted: Range) -> str:
    plan = series_plan.plan(wanted, target.interval_ms, _KEPT, wanted.end_ms)
    question = SeriesQuestion(wanted, metric="Octets", labels={"ifName": port}, rate=True)
    lines = [
        NamedLine(line.series.name, line)
        for line in SeriesReader(engine, plan, question.selects).lines(target)
    ]
    return series_picture.svg(lines, plan.sentence(), wanted.start_ms, wanted.end_ms)


def _fill(engine: Engine, past: Past, shape: SeriesSet, first: Sequence[float]) -> list[Target]:
    """Write the days of all devices; raw polls of the last ones."""
    partitions.prepare(engine, past.now_ms)
    with sql.writing(engine) as conn:
        row = (shape.id, shape.packed, len(shape), past.now_ms)
        bulk.insert(conn, series_sets, [row], "ON CONFLICT (id) DO NOTHING")
    found = []
    with progress.shown(f"{engine.dialect.name}, days of the past", past.devices) as show:
        for number in range(past.devices):
            draft = DeviceDraft(f"past-{number}", address="127.0.0.1")
            devices.add(engine, draft, [TargetDraft(collector="snmp")])
            target = targets.show(engine, draft.name, "snmp")
            _fill_target(engine, past, target.id, shape, first)
            found.append(target)
            show(number)
    return found


def _fill_target(
    engine: Engine, past: Past, target_id: int, shape: SeriesSet, first: Sequence[float]
) -> None:
    seeds = range(target_id * DIFFERENT_DAYS, (target_id + 1) * DIFFERENT_DAYS)
    days = [believable_day.day(shape, first, START_MS, seed) for seed in seeds]
    made = [_rolled_up(day) for day in days]
    fine: list[_RollupRow] = []
    coarse: list[_RollupRow] = []
    raw: list[_BlockRow] = []
    for number in range(past.days):
        start_ms = START_MS + number * DAY_MS
        of_day = replace(made[number % len(made)], buckets=rollup.of_day(start_ms, 300_000))
        hours = rollup.coarser(of_day, 12)
        fine.append((target_id, start_ms, rollup_codec.encode(of_day)))
        coarse.append((target_id, start_ms, rollup_codec.encode(hours)))
        if number >= past.days - RAW_DAYS:
            raw += _block_rows(target_id, days[number % len(days)], start_ms)
    with sql.writing(engine) as conn:
        bulk.insert(conn, history_5m, fine)
        bulk.insert(conn, history_1h, coarse)
        bulk.insert(conn, history_blocks, raw)


def _rolled_up(day: Day) -> Rollup:
    polls = ShapedPolls(day.shape, Segment(day.shape.id, day.at_ms, day.values))
    made = day_rollup.roll_up([polls], rollup.of_day(START_MS, 300_000), 60_000)
    assert made is not None
    return made


def _block_rows(target_id: int, day: Day, start_ms: int) -> Iterator[_BlockRow]:
    at_ms = day.at_ms - START_MS + start_ms
    for begin in range(0, len(at_ms), _POLLS_OF_BLOCK):
        some = slice(begin, begin + _POLLS_OF_BLOCK)
        values = np.ascontiguousarray(day.values[:, some])
        block = Block((Segment(day.shape.id, at_ms[some], values),))
        yield target_id, block.start_ms, block.end_ms, block.polls, block_codec.encode(block)
