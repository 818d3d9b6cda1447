"""Can one leader keep a large fleet on its grid, and what does a dispatched target cost?

The real `celery -A poller beat` fills the board from SQLite and publishes messages; drain processes
replace the workers. The same run measures one RedBeat entry per device for comparison.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import cpu, fleet, progress, quantile, redbeat_entries
from benchmarks.drains import Drained, Drains
from benchmarks.section import Comparison, Figure, Findings, Section
from benchmarks.stage import Process, Stage
from poller.db.inventory import inventory_feed
from poller.state.cluster import overview_reader

#: The intervals after which a fleet is measured even if it has not caught up.
CATCH_UP_INTERVALS = 3
#: The share of the needed dispatches that counts as complete: a tick at the edge may be cut off.
SUSTAINED = 0.99
PLACE_WITHIN_S = 1_800
#: The minimum wait: a drain subscribes to new queues at its next heartbeat.
WARM_UP_S = 4


@dataclass(frozen=True, slots=True)
class Size:
    targets: int
    interval_s: int
    measure_s: int
    domains: int
    drains: int  # number of processes
    entries: int  # number of RedBeat entries
    redbeat_s: int


@dataclass(frozen=True, slots=True)
class Window:
    """The resources that were used between two whole seconds of the clock."""

    begin: int
    end: int
    cpu_s: dict[str, float]
    others_s: float  # CPU of all other processes
    bytes_used: int
    overdue: int


def run(size: Size, stage: Stage) -> Findings:
    fleet.store(stage.services.engine, size.targets, size.interval_s, size.domains)
    empty = stage.server.memory_bytes
    drains = Drains(stage, size.drains, size.interval_s)
    beat = stage.start("beat", ["-m", "celery", "-A", "poller", "--quiet", "beat"])
    filled = _fill(size, stage, beat, empty)
    window = _measure(size, stage, {"beat": beat, "drain": drains, "server": stage.server}, empty)
    stage.stop(beat)
    drained = drains.stop()
    figures = [
        *filled,
        *_rates(size, window, drained),
        *_costs(size, window, drained),
        *_check(stage, drained),
    ]
    theirs = redbeat_entries.measure(size.entries, size.redbeat_s)
    return Findings(figures, _compare(figures, theirs), "one RedBeat entry per device")


def _fill(size: Size, stage: Stage, beat: Process, empty: int) -> list[Figure]:
    """Wait until the leader has filled an empty board and caught up with due targets."""
    seconds = _placing_s(size, stage, beat)
    used = stage.server.memory_bytes - empty
    began = time.monotonic()
    patience = CATCH_UP_INTERVALS * size.interval_s
    progress.follow(
        "catching up", size.targets, lambda: size.targets - _overdue(stage), patience, every_s=1
    )
    caught_up = time.monotonic() - began
    progress.wait("warming up", max(size.interval_s, WARM_UP_S))
    return [
        Figure("placed_per_s", "targets placed on an empty board", size.targets / seconds, "/s"),
        Figure("catch_up_s", "until no target was late", caught_up, "s"),
        Figure("placed_bytes", "server memory, never polled", used / size.targets, "bytes/target"),
    ]


def _placing_s(size: Size, stage: Stage, beat: Process) -> float:
    services = stage.services

    def placed() -> float:
        beat.must_live()
        return (
            size.targets
            if services.board.version() is not None
            else services.redis.hlen(services.keys.spec)
        )

    what = f"the leader places {size.targets:,} targets"
    progress.follow(what, size.targets, placed, PLACE_WITHIN_S, every_s=0.02)
    since: Any = services.redis.hget(services.keys.leader, "since")
    return time.time() - int(since) / 1000


def _overdue(stage: Stage) -> int:
    return overview_reader.read(stage.services.redis, stage.services.keys).overdue


def _measure(
    size: Size, stage: Stage, processes: Mapping[str, Process | Drains], empty: int
) -> Window:
    begin = _next_second()
    before, all_before = (
        {name: process.cpu_s for name, process in processes.items()},
        cpu.machine_s(),
    )
    progress.wait("measuring", size.measure_s)
    end = _next_second()
    spent = {name: process.cpu_s - before[name] for name, process in processes.items()}
    others = cpu.machine_s() - all_before - sum(spent.values())
    return Window(begin, end, spent, others, stage.server.memory_bytes - empty, _overdue(stage))


def _next_second() -> int:
    """Wait for the next whole second: the drains count by seconds."""
    second = math.ceil(time.time())
    time.sleep(max(0.0, second - time.time()))
    return second


def _rates(size: Size, window: Window, drained: Drained) -> list[Figure]:
    late = drained.between(window.begin, window.end)
    rate, needed = late.total() / (window.end - window.begin), size.targets / size.interval_s
    return [
        Figure("needed_per_s", f"needed for {size.targets:,} at {size.interval_s} s", needed, "/s"),
        Figure("dispatched_per_s", "dispatched", rate, "/s", at_least=needed * SUSTAINED),
        Figure("peak_per_s", "most in one second, catching up", drained.peak, "/s"),
        Figure("late_p50_ms", "lateness, median", quantile.of(late, 0.5), "ms"),
        Figure("late_p99_ms", "lateness, 99 %", quantile.of(late, 0.99), "ms", below=1000),
        Figure("late_max_ms", "lateness, most", max(late, default=0), "ms"),
        Figure("overdue_at_end", "late by a second or more at the end", window.overdue, "targets"),
    ]


def _costs(size: Size, window: Window, drained: Drained) -> list[Figure]:
    """Return the CPU per dispatched target, and the share of one core."""
    dispatched = max(1, drained.between(window.begin, window.end).total())
    seconds = window.end - window.begin
    figures = [
        Figure(
            f"{name}_cpu_us",
            f"CPU of {name} ({100 * spent / seconds:.0f} % of a core)",
            spent / dispatched * 1e6,
            "us/target",
        )
        for name, spent in window.cpu_s.items()
    ]
    return [
        *figures,
        Figure(
            "batch_targets",
            "targets in a batch",
            dispatched / max(1, drained.batches_between(window.begin, window.end)),
            "targets",
        ),
        Figure(
            "others_core",
            "CPU of all other processes",
            100 * window.others_s / seconds,
            "% of a core",
        ),
        Figure(
            "polled_bytes",
            "server memory, polled",
            window.bytes_used / size.targets,
            "bytes/target",
        ),
    ]


def _check(stage: Stage, drained: Drained) -> list[Figure]:
    """Return the numbers of targets that are in no place or in more than one place."""
    with inventory_feed.all_specs(stage.services.engine) as stored:
        check = stage.services.board.check(spec.id for spec in stored.specs)
    return [
        Figure("lost", "targets lost", len(check.lost), "targets", below=1),
        Figure("doubled", "targets doubled", len(check.doubled), "targets", below=1),
        Figure("refused", "starts and finishes refused", drained.refused, "targets", below=1),
    ]


def _compare(figures: list[Figure], theirs: redbeat_entries.Measured) -> list[Comparison]:
    ours = {figure.name: figure.value or 0.0 for figure in figures}
    return [
        Comparison("per_s", "dispatched", ours["dispatched_per_s"], theirs.per_second, "/s"),
        Comparison("beat_cpu_us", "CPU of beat", ours["beat_cpu_us"], theirs.beat_us, "us/target"),
        Comparison(
            "server_cpu_us", "CPU of server", ours["server_cpu_us"], theirs.server_us, "us/target"
        ),
        Comparison(
            "server_bytes",
            "server memory",
            ours["polled_bytes"],
            theirs.server_bytes,
            "bytes/target",
        ),
    ]


SECTION = Section(
    asks="can one leader keep a large fleet on its grid, and at what cost?",
    sizes={
        "full": Size(1_000_000, 60, 120, domains=16, drains=8, entries=3_000, redbeat_s=20),
        "small": Size(20_000, 5, 10, domains=4, drains=2, entries=1_000, redbeat_s=10),
        "tiny": Size(400, 1, 2, domains=2, drains=2, entries=100, redbeat_s=2),
    },
    run=run,
)
