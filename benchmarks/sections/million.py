"""A million interfaces a minute: what do they take, and how many do these cores really carry?

20,834 switches are really polled. A machine that does not carry them polls a share, and what the
million takes is computed from it; every such figure says so.
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
#: The million is polled every minute, whatever the interval of a small size.
MINUTE_S = 60.0
WORKERS = 2
#: CPU of a sample, all of the platform with compaction.
GOAL_US = 2.0
_AFTER_MS = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class Size:
    first: int  # switches that are polled first
    interval_s: float
    first_s: float  # measurement of them
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


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet that was really polled."""

    switches: int
    seen: Watched

    @property
    def is_million(self) -> bool:
        return self.switches >= SWITCHES


def run(size: Size, _stage: Stage) -> Findings:
    first, stored, asked = _first(size)
    largest = _largest(size, first)
    figures = [
        *_cost(first.seen, stored, asked),
        *_million(first, largest, stored, asked),
        *_carried(largest),
    ]
    return Findings(figures, notes=_notes(size, first), grid=_grid(first, largest))


def _first(size: Size) -> tuple[Fleet, Stored, Asked]:
    """Poll the first fleet, or the largest half, quarter ... of it that keeps its slots."""
    number = size.first
    while True:
        progress.step(f"{number:,} switches")
        try:
            with stage() as apart:
                seen = _watched(apart, size, number, size.first_s)
                asked = switches.asked(_request(apart, size).config)
                return Fleet(number, seen), _stored(apart), asked
        except (TooMany, errors.StoreUnavailable):
            if number == 1:
                raise
            number //= 2


def _largest(size: Size, first: Fleet) -> Fleet:
    """Search the largest fleet that keeps its slots: from the computed one downwards."""
    poll_ms = sum(first.seen.role_ms.values())  # with the agents, which take part of the cores
    computed = size.cores * size.interval_s * 1000 / poll_ms
    number = min(size.most, round(0.7 * computed))
    while number > 1:
        progress.step(f"the largest fleet: {number:,} switches")
        try:
            with stage() as apart:
                return Fleet(number, _watched(apart, size, number, size.measure_s))
        except (TooMany, errors.StoreUnavailable):
            number = round(0.85 * number)
    raise errors.StoreUnavailable("this machine carries no switch beside its simulator")


def _watched(apart: Stage, size: Size, number: int, seconds: float) -> Watched:
    trial = Trial(size.trial_s, LATE_MS, 10 + 5 * size.interval_s)
    request = _request(apart, size)
    return watched.watch(apart, number, request, WORKERS, seconds, switches.MODEL, trial)


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


def _million(first: Fleet, largest: Fleet, stored: Stored, asked: Asked) -> Iterator[Figure]:
    """What the million takes: measured if it was polled, else computed from a share."""
    text = f"{SWITCHES:,} switches, {'measured' if first.is_million else 'computed'}"
    polls_s = SWITCHES / MINUTE_S
    cores = polls_s * (first.seen.poll_ms + _compaction_ms(stored)) / 1000
    yield Figure("million_cores", f"{text}: cores, with compaction", cores, "cores")
    memory = _memory_mb(first, largest)
    yield Figure("million_mb", f"{text}: memory of {WORKERS} workers, beat, server", memory, "MB")
    late = quantile.of(first.seen.late, 0.99)
    yield Figure("first_late_p99_ms", f"{first.switches:,} switches: lateness, 99 %", late, "ms")
    day_gb = stored.block_bytes / stored.polls * polls_s * 86_400 / 1e9
    yield Figure(
        "million_day_gb", f"{SWITCHES:,} switches, computed: a day in blocks", day_gb, "GB"
    )
    yield Figure("million_requests", f"{text}: requests", asked.requests * polls_s, "/s")
    yield Figure("million_samples", f"{text}: samples", asked.samples * polls_s, "/s")


def _memory_mb(first: Fleet, largest: Fleet) -> float | None:
    """Return the memory of the million, else from two fleets; None if they are of one size."""
    if first.is_million:
        return _platform_mb(first.seen)
    if first.switches == largest.switches:
        return None
    one, other = _platform_mb(first.seen), _platform_mb(largest.seen)
    each_mb = (other - one) / (largest.switches - first.switches)
    return one + each_mb * (SWITCHES - first.switches)


def _platform_mb(seen: Watched) -> float:
    return sum(mb for role, mb in seen.used.ended_mb.items() if role != "agents")


def _carried(largest: Fleet) -> Iterator[Figure]:
    text = "largest fleet carried"
    seen = largest.seen
    bad = sum(not poll.good for poll in seen.polls)
    yield Figure("carried", text, largest.switches, "switches")
    yield Figure("carried_ports", f"{text}: interfaces", largest.switches * switches.PORTS, "")
    late = quantile.of(seen.late, 0.99)
    yield Figure("carried_late_p99_ms", f"{text}: lateness, 99 %", late, "ms", below=LATE_MS)
    yield Figure("carried_missed", f"{text}: slots without a poll", seen.missed, "", below=1)
    yield Figure("carried_bad", f"{text}: polls that failed", bad, "", below=1)
    yield Figure("carried_s", f"{text}: measured for", seen.used.seconds, "s")
    for kept in seen.kept:
        yield Figure(f"carried_{kept.name}", f"{text}: {kept.text}", kept.value, "", below=1)


def _grid(first: Fleet, largest: Fleet) -> Grid:
    both = (first.seen, largest.seen)
    roles = list(first.seen.role_ms)
    return Grid(
        [f"{fleet.switches:,} switches" for fleet in (first, largest)],
        [
            ("polls", "/s", [len(one.polls) / one.used.seconds for one in both]),
            ("CPU of a poll", "ms", [one.poll_ms for one in both]),
            *((f"  {role}", "ms", [one.role_ms[role] for one in both]) for role in roles),
            ("all of it", "cores", [_cores(one) for one in both]),
            ("of it agents, in no account", "cores", [_agents(one) for one in both]),
            ("other processes", "cores", [one.used.others_s / one.used.seconds for one in both]),
            ("lateness, median", "ms", [quantile.of(one.late, 0.5) for one in both]),
            ("lateness, 99 %", "ms", [quantile.of(one.late, 0.99) for one in both]),
            *(
                (f"memory of {role}", "MB", [one.used.ended_mb[role] for one in both])
                for role in roles
            ),
        ],
    )


def _cores(seen: Watched) -> float:
    return sum(seen.used.cpu_s.values()) / seen.used.seconds


def _agents(seen: Watched) -> float:
    return seen.used.cpu_s["agents"] / seen.used.seconds


def _notes(size: Size, first: Fleet) -> list[str]:
    polls = len(first.seen.polls) / first.seen.used.seconds
    return [
        f"{first.switches:,} switches at {size.interval_s:g} s were polled, {polls:.0f} polls a "
        f"second; {SWITCHES:,} switches have {SWITCHES * switches.PORTS:,} ports",
        "blocks have the few polls of this run; those of an hour take less a sample (history)",
    ]


SECTION = Section(
    asks="what do a million interfaces a minute take, and how many do these cores carry?",
    sizes={
        "full": Size(SWITCHES, 60, 120, 60, 600, 130_000),
        "small": Size(400, 10, 10, 10, 30, 1_500),
        "tiny": Size(3, 1, 2, 1, 2, 6),
    },
    run=run,
)
