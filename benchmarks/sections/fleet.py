"""Can this machine keep a fleet of small polls on its grid for long without memory growth?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import quantile, watched
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from benchmarks.watched import Watched

LATE_MS = 1000
#: The memory growth of a role that still counts as flat.
FLAT_PERCENT = 5.0


@dataclass(frozen=True, slots=True)
class Size:
    devices: int
    interval_s: float
    measure_s: float
    flat: bool  # whether the run is long enough to distinguish growth from start-up


def run(size: Size, stage: Stage) -> Findings:
    request = PollRequest(size.interval_s, ("system",))
    seen = watched.watch(stage, size.devices, request, workers=2, seconds=size.measure_s)
    series = {
        "late_p99_ms": seen.late_p99,
        **{f"{role}_mb": points for role, points in seen.memory.items()},
    }
    figures = [*_punctual(size, seen), *_costs(seen), *_memory(size, seen), *seen.kept]
    samples = seen.polls[-1].samples
    fleet = f"{size.devices:,} devices at {size.interval_s:g} s"
    note = f"{fleet}, polls of {samples} samples, two workers"
    return Findings(figures, notes=[f"{note}, for {seen.used.seconds:.0f} s"], series=series)


def _punctual(size: Size, seen: Watched) -> Iterator[Figure]:
    late, bad = seen.late, sum(not poll.good for poll in seen.polls)
    yield Figure("polls_per_s", "polls", len(seen.polls) / seen.used.seconds, "/s")
    yield Figure("late_p50_ms", "lateness, median", quantile.of(late, 0.5), "ms")
    yield Figure("late_p99_ms", "lateness, 99 %", quantile.of(late, 0.99), "ms", below=LATE_MS)
    yield Figure("late_max_ms", "lateness, most", max(late, default=0), "ms")
    worst = max((value for _, value in seen.late_p99), default=0)
    yield Figure("late_worst_ms", "lateness, 99 % of the worst ten seconds", worst, "ms")
    yield Figure("missed", "slots without a poll", seen.missed, "slots", below=1)
    yield Figure("bad", "polls that failed", bad, "polls", below=1)


def _costs(seen: Watched) -> Iterator[Figure]:
    yield Figure("poll_ms", "CPU of a poll, whole platform", seen.poll_ms, "ms")
    for role, spent in seen.role_ms.items():
        share = 100 * seen.used.cpu_s[role] / seen.used.seconds
        yield Figure(f"{role}_ms", f"CPU of {role} ({share:.1f} % of a core)", spent, "ms/poll")
    others = 100 * seen.used.others_s / seen.used.seconds
    yield Figure("others_core", "CPU of all other processes", others, "% of a core")


def _memory(size: Size, seen: Watched) -> Iterator[Figure]:
    for role, began in seen.used.began_mb.items():
        ended = seen.used.ended_mb[role]
        yield Figure(f"{role}_began_mb", f"memory of {role}, begin", began, "MB")
        yield Figure(f"{role}_ended_mb", f"memory of {role}, end", ended, "MB")
        growth = 100 * (ended / began - 1)
        below = FLAT_PERCENT if size.flat else None
        yield Figure(f"{role}_growth", f"memory of {role}, growth", growth, "%", below=below)


SECTION = Section(
    asks="can this machine keep 20,000 devices of small polls on their grid for ten minutes?",
    sizes={
        "full": Size(20_000, 60, 600, flat=True),
        "small": Size(2_000, 6, 20, flat=False),
        "tiny": Size(100, 2, 4, flat=False),
    },
    run=run,
)
