"""A million interfaces a minute: what do they take, and how many do these cores really carry?

The fleet of 20,834 switches is computed from a share of it that was really polled; every such
figure says so. The largest fleet that the machine carries beside its simulator is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from benchmarks import progress, quantile, switches, watched
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Grid, Section
from benchmarks.stage import Stage, stage
from benchmarks.switches import Asked
from benchmarks.watched import TooMany, Trial, Watched
from poller import errors
from poller.db import engine as sql
from poller.db.history import compaction

LATE_MS = 1_000
SWITCHES = 20_834
WORKERS = 2
#: CPU of a sample, all of the platform with compaction.
GOAL_US = 2.0
_AFTER_MS = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class Size:
    first: int  # switches of the first share
    interval_s: float
    share_s: float  # measurement of the first share
    trial_s: float
    measure_s: float
    most: int  # switches of the largest fleet that is tried
    cores: float = 2.0


@dataclass(frozen=True, slots=True)
class Stored:
    """What the polls of a run take in SQLite, and the CPU of their compaction."""

    polls: int
    fresh_bytes: int
    block_bytes: int
    compaction_s: float


def run(size: Size, _stage: Stage) -> Findings:
    first, stored, asked = _share(size)
    carried, largest = _largest(size, first)
    figures = [
        *_cost(first, stored, asked),
        *_computed(size, first, carried, largest, stored, asked),
        *_carried(carried, largest),
    ]
    return Findings(figures, notes=_notes(size, first), grid=_grid(size, first, carried, largest))


def _share(size: Size) -> tuple[Watched, Stored, Asked]:
    progress.step(f"a share: {size.first:,} switches")
    with stage() as apart:
        request = _request(apart, size)
        asked = switches.asked(request.config)
        seen = watched.watch(
            apart, size.first, request, WORKERS, size.share_s, model=switches.MODEL
        )
        return seen, _stored(apart), asked


def _largest(size: Size, first: Watched) -> tuple[int, Watched]:
    """Search the largest fleet that keeps its slots: from the computed one downwards."""
    poll_ms = sum(first.role_ms.values())  # with the agents, which take their part of the cores
    computed = size.cores * size.interval_s * 1000 / poll_ms
    number = min(size.most, max(size.first, round(0.9 * computed)))
    while number > size.first:
        progress.step(f"the largest fleet: {number:,} switches")
        try:
            with stage() as apart:
                return number, watched.watch(
                    apart,
                    number,
                    _request(apart, size),
                    WORKERS,
                    size.measure_s,
                    model=switches.MODEL,
                    trial=Trial(size.trial_s, LATE_MS),
                )
        except (TooMany, errors.StoreUnavailable):
            number = round(0.85 * number)
    return size.first, first


def _request(apart: Stage, size: Size) -> PollRequest:
    config = switches.module_file(apart.home)
    return PollRequest(size.interval_s, modules=(switches.MODULE,), config=config)


def _stored(apart: Stage) -> Stored:
    """Compact all polls of a run, as the job does an hour later. Returns what they take."""
    engine = apart.services.engine
    with sql.single_read(engine) as conn:
        polls = int(conn.execute(sa.text("SELECT count(*) FROM readings")).scalar_one())
        fresh = int(conn.execute(sa.text(_BYTES), {"table": "readings"}).scalar_one())
    began_s = time.process_time()
    now_ms = time.time_ns() // 1_000_000 + _AFTER_MS
    compaction.compact(engine, now_ms, lambda _: None, time.monotonic() + 600)
    spent_s = time.process_time() - began_s
    with sql.single_read(engine) as conn:
        found = conn.execute(sa.text("SELECT sum(polls) FROM history_blocks")).scalar_one()
        blocks = int(conn.execute(sa.text(_BYTES), {"table": "history_blocks"}).scalar_one())
    moved = max(1, int(found or 0))
    return Stored(moved, round(fresh * moved / max(1, polls)), blocks, spent_s)


_BYTES = """SELECT sum(pgsize) FROM dbstat WHERE name IN
    (SELECT name FROM sqlite_master WHERE tbl_name = :table)"""


def _compaction_ms(stored: Stored) -> float:
    return stored.compaction_s / stored.polls * 1000


def _cost(first: Watched, stored: Stored, asked: Asked) -> Iterator[Figure]:
    samples = asked.samples
    polling_us = first.poll_ms * 1000 / samples
    compaction_us = _compaction_ms(stored) * 1000 / samples
    sample_us = polling_us + compaction_us
    yield Figure("samples", "samples of a poll", samples, "")
    yield Figure("requests", "requests of a poll", asked.requests, "")
    yield Figure("poll_ms", "CPU of a poll, whole platform", first.poll_ms, "ms")
    yield Figure("compaction_ms", "CPU of its compaction", _compaction_ms(stored), "ms")
    yield Figure("sample_us", "CPU of a sample, compacted", sample_us, "us", at_most=GOAL_US)
    yield Figure("objects_per_core_s", "objects a second and core", 1e6 / sample_us, "")
    worker_us = first.role_ms["worker"] * 1000 / samples
    yield Figure(
        "worker_objects", "the workers alone: objects a second and core", 1e6 / worker_us, ""
    )
    fresh, blocks = (
        amount / stored.polls / samples for amount in (stored.fresh_bytes, stored.block_bytes)
    )
    yield Figure("fresh_bytes", "a fresh sample on disk", fresh, "B")
    yield Figure("block_bytes", "a compacted sample on disk", blocks, "B")


def _computed(
    size: Size, first: Watched, carried: int, largest: Watched, stored: Stored, asked: Asked
) -> Iterator[Figure]:
    text = f"{SWITCHES:,} switches, computed"
    polls_s = SWITCHES / size.interval_s
    cores = polls_s * (first.poll_ms + _compaction_ms(stored)) / 1000
    yield Figure("million_cores", f"{text}: cores", cores, "cores")
    memory = _memory_mb(size, first, carried, largest)
    yield Figure("million_mb", f"{text}: memory of {WORKERS} workers, beat, server", memory, "MB")
    day_gb = stored.block_bytes / stored.polls * polls_s * 86_400 / 1e9
    yield Figure("million_day_gb", f"{text}: a day in blocks", day_gb, "GB")
    yield Figure("million_requests", f"{text}: requests", asked.requests * polls_s, "/s")
    yield Figure("million_samples", f"{text}: samples", asked.samples * polls_s, "/s")


def _memory_mb(size: Size, first: Watched, carried: int, largest: Watched) -> float | None:
    """Return the memory of the whole fleet, from two fleets; None if there is only one."""
    if carried <= size.first:
        return None
    small, large = _platform_mb(first), _platform_mb(largest)
    return large + (large - small) / (carried - size.first) * (SWITCHES - carried)


def _platform_mb(seen: Watched) -> float:
    return sum(mb for role, mb in seen.used.ended_mb.items() if role != "agents")


def _carried(carried: int, largest: Watched) -> Iterator[Figure]:
    text = "largest fleet carried"
    bad = sum(not poll.good for poll in largest.polls)
    yield Figure("carried", text, carried, "switches")
    yield Figure("carried_ports", f"{text}: interfaces", carried * switches.PORTS, "")
    late = quantile.of(largest.late, 0.99)
    yield Figure("carried_late_p99_ms", f"{text}: lateness, 99 %", late, "ms", below=LATE_MS)
    yield Figure("carried_missed", f"{text}: slots without a poll", largest.missed, "", below=1)
    yield Figure("carried_bad", f"{text}: polls that failed", bad, "", below=1)
    yield Figure("carried_s", f"{text}: measured for", largest.used.seconds, "s")
    for kept in largest.kept:
        yield Figure(f"carried_{kept.name}", f"{text}: {kept.text}", kept.value, "", below=1)


def _grid(size: Size, first: Watched, carried: int, largest: Watched) -> Grid:
    both = (first, largest)
    return Grid(
        [f"{size.first:,} switches", f"{carried:,} switches"],
        [
            ("polls", "/s", [len(one.polls) / one.used.seconds for one in both]),
            ("CPU of a poll", "ms", [one.poll_ms for one in both]),
            *((f"  {role}", "ms", [one.role_ms[role] for one in both]) for role in first.role_ms),
            ("all of it", "cores", [_cores(one) for one in both]),
            ("of it agents, in no account", "cores", [_agents(one) for one in both]),
            ("other processes", "cores", [one.used.others_s / one.used.seconds for one in both]),
            ("lateness, median", "ms", [quantile.of(one.late, 0.5) for one in both]),
            ("lateness, 99 %", "ms", [quantile.of(one.late, 0.99) for one in both]),
            *(
                (f"memory of {role}", "MB", [one.used.ended_mb[role] for one in both])
                for role in first.role_ms
            ),
        ],
    )


def _cores(seen: Watched) -> float:
    return sum(seen.used.cpu_s.values()) / seen.used.seconds


def _agents(seen: Watched) -> float:
    return seen.used.cpu_s["agents"] / seen.used.seconds


def _notes(size: Size, first: Watched) -> list[str]:
    polls = len(first.polls) / first.used.seconds
    return [
        f"measured: {size.first:,} switches at {size.interval_s:g} s, {polls:.0f} polls a second; "
        f"computed: {SWITCHES:,} switches, 1,000,032 ports, at the same cost of a poll",
        "blocks have the few polls of this run; those of an hour take less a sample (history)",
    ]


SECTION = Section(
    asks="what do a million interfaces a minute take, and how many do these cores carry?",
    sizes={
        "full": Size(2_000, 60, 60, 60, 600, SWITCHES),
        "small": Size(200, 10, 10, 10, 30, 3_000),
        "tiny": Size(3, 1, 2, 1, 2, 6),
    },
    run=run,
)
