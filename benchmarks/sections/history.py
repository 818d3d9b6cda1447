"""What does history take, beside RRD and InfluxDB, and how fast is a picture of it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks import (
    agents,
    believable_day,
    compaction_cost,
    drawn_history,
    influx_points,
    progress,
    rollup_cost,
    rrd_files,
)
from benchmarks.believable_day import Day
from benchmarks.compaction_cost import START_MS
from benchmarks.databases import databases
from benchmarks.drawn_history import Past
from benchmarks.section import Figure, Findings, Grid, Row, Section
from benchmarks.sink_polls import polled
from benchmarks.stage import Stage
from poller.db import engine as sql
from poller.db import migrate
from poller.domain.metrics.reading import ReadingSet


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    hours: int
    past: Past
    others: int  # devices of the comparison with RRD and InfluxDB


@dataclass(slots=True)
class _Column:
    """What one store takes. None: not measured."""

    name: str
    raw: float | None = None  # bytes a sample
    rolled: float | None = None  # bytes of a device's roll-ups of a day
    cpu_us: float | None = None


@dataclass(slots=True)
class _Measured:
    figures: list[Figure] = field(default_factory=list)
    columns: list[_Column] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run(size: Size, stage: Stage) -> Findings:
    first_poll = polled(agents.devices(1)[0])
    values, shape = list(first_poll.values), first_poll.series
    days = [
        believable_day.day(shape, values, START_MS, seed, size.hours * 60)
        for seed in range(size.devices)
    ]
    found = _Measured()
    with databases(stage, "history") as urls:
        for url, pid in urls:
            _measure(found, url, pid, days)
    with databases(stage, "history-drawn") as urls:
        for url, _ in urls:
            _draw(found, url, size.past, first_poll)
    _measure_others(found, stage, days[: size.others])
    found.notes.append(
        f"{size.devices} devices, {size.hours} h of if_mib at 60 s, {len(shape)} samples a poll, "
        f"{believable_day.BUSY_PORTS} busy ports each; every bit was compared with what was polled"
    )
    found.notes.append(
        f"pictures from {size.past.devices * size.past.days:,} device-days, written by the codecs"
    )
    return Findings(found.figures, notes=found.notes, grid=_grid(found.columns))


def _measure(found: _Measured, url: str, pid: int | None, days: list[Day]) -> None:
    engine = sql.create(url)
    migrate.upgrade(engine)
    compaction = compaction_cost.compacted(engine, pid, days)
    rollups = rollup_cost.rolled_up(engine, pid, compaction.polls)
    found.figures += [*compaction.figures, *rollups.figures]
    samples = compaction.polls * len(days[0].shape)
    found.columns.append(
        _Column(
            f"poller, {engine.dialect.name}",
            compaction.disk_bytes / samples,
            rollups.row_5m_bytes + rollups.row_1h_bytes,
            compaction.total_us + (rollups.figures[0].value or 0.0),
        )
    )
    engine.dispose()


def _draw(found: _Measured, url: str, past: Past, first_poll: ReadingSet) -> None:
    engine = sql.create(url)
    migrate.upgrade(engine)
    shape = first_poll.series
    found.figures += drawn_history.drawn(engine, past, shape, list(first_poll.values))
    engine.dispose()


def _measure_others(found: _Measured, stage: Stage, days: Sequence[Day]) -> None:
    samples = sum(day.values.size for day in days)
    polls = sum(len(day.at_ms) for day in days)
    rrd, influx = _Column("RRD"), _Column("InfluxDB")
    if rrd_files.installed():
        progress.step("RRD, a day")
        files = rrd_files.stored(stage.home / "rrd", days)
        whole = len(days) * rrd_files.RAW_ROWS * len(days[0].shape)
        rrd.raw, rrd.rolled = files.raw_bytes / whole, files.rolled_bytes / len(days)
        rrd.cpu_us = files.cpu_s / polls * 1e6
    else:
        found.notes.append(f"RRD is not measured: {rrd_files.HINT}")
    if influx_points.installed():
        points = influx_points.stored(stage.home / "influx", days)
        influx.raw, influx.cpu_us = points.bytes / samples, points.cpu_s / polls * 1e6
    else:
        found.notes.append(f"InfluxDB is not measured: {influx_points.HINT}")
    found.columns += [rrd, influx]


def _grid(columns: Sequence[_Column]) -> Grid:
    kilobytes = [None if each.rolled is None else each.rolled / 1000 for each in columns]
    rows: list[Row] = [
        ("every sample, on disk", "B/sample", [each.raw for each in columns]),
        ("5 minutes and an hour, a device and day", "kB", kilobytes),
        ("CPU to keep a poll", "us/poll", [each.cpu_us for each in columns]),
    ]
    return Grid([each.name for each in columns], rows)


SECTION = Section(
    asks="how many bytes does a sample of history take, what does it cost, how fast is it drawn?",
    sizes={
        "full": Size(200, 24, Past(25, 400), 20),
        "small": Size(60, 24, Past(2, 400), 4),
        "tiny": Size(4, 2, Past(1, 40), 1),
    },
    run=run,
)
