"""What does a poll cost when the fleet grows? The same if_mib polls for several fleet sizes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks import progress, quantile, watched
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Grid, Row, Section
from benchmarks.stage import Stage, stage
from benchmarks.watched import Watched
from poller.settings.fields import Settings

LATE_MS = 1000


@dataclass(frozen=True, slots=True)
class Size:
    fleets: tuple[int, ...]
    interval_s: float
    measure_s: float


def run(size: Size, _stage: Stage) -> Findings:
    hardest_first = {devices: _measured(size, devices) for devices in reversed(size.fleets)}
    shipped = bool(Settings.model_fields["target_homes"].default)
    otherwise = _measured(size, size.fleets[-1], homes=not shipped)
    seen = {devices: hardest_first[devices] for devices in size.fleets}
    figures = [figure for devices, one in seen.items() for figure in _figures(devices, one)]
    largest = seen[size.fleets[-1]]
    carried = size.interval_s * 1000 / largest.poll_ms
    text = f"fleet one core carries at {size.interval_s:g} s, computed from the largest"
    figures.append(Figure("per_core", text, carried, "devices"))
    figures += _homes(size.fleets[-1], {shipped: largest, not shipped: otherwise})
    series: dict[str, list[tuple[float, float]]] = {
        "late_p99_ms": [(n, quantile.of(one.late, 0.99)) for n, one in seen.items()],
        **{
            f"{role}_ms": [(n, one.role_ms[role]) for n, one in seen.items()]
            for role in largest.role_ms
        },
    }
    return Findings(figures, notes=[_note(size, largest)], grid=_grid(size, seen), series=series)


def _measured(size: Size, devices: int, homes: bool | None = None) -> Watched:
    """Measure a fleet. None: homes of targets as shipped."""
    progress.step(f"{devices:,} devices")
    with stage() as apart:
        if homes is not None:
            os.environ["POLLER_TARGET_HOMES"] = str(homes)
        return watched.watch(
            apart, devices, PollRequest(size.interval_s), workers=2, seconds=size.measure_s
        )


def _homes(devices: int, by_homes: Mapping[bool, Watched]) -> Iterator[Figure]:
    """What homes of targets save: every target is known to one worker, not to both."""
    for name, text, has_homes in (("off", "without homes", False), ("on", "with homes", True)):
        seen = by_homes[has_homes]
        megabytes = seen.used.ended_mb["worker"]
        prefix = f"homes_{name}"
        label = f"{devices:,} devices, {text}"
        yield Figure(f"{prefix}_workers_mb", f"{label}: two workers", megabytes, "MB")
        yield Figure(f"{prefix}_worker_mb", f"{label}: one of them", megabytes / 2, "MB")
        yield Figure(f"{prefix}_poll_ms", f"{label}: CPU of a poll", seen.poll_ms, "ms")
        late = quantile.of(seen.late, 0.99)
        yield Figure(f"{prefix}_late_p99_ms", f"{label}: lateness, 99 %", late, "ms")


def _figures(devices: int, seen: Watched) -> Iterator[Figure]:
    name, text = f"at_{devices}", f"{devices:,} devices"
    late = seen.late
    yield Figure(f"{name}_poll_ms", f"{text}: CPU of a poll, whole platform", seen.poll_ms, "ms")
    for role, spent in seen.role_ms.items():
        yield Figure(f"{name}_{role}_ms", f"{text}: of {role}", spent, "ms")
    yield Figure(f"{name}_late_p50_ms", f"{text}: lateness, median", quantile.of(late, 0.5), "ms")
    yield Figure(
        f"{name}_late_p99_ms",
        f"{text}: lateness, 99 %",
        quantile.of(late, 0.99),
        "ms",
        below=LATE_MS,
    )
    yield Figure(f"{name}_missed", f"{text}: slots without a poll", seen.missed, "slots", below=1)
    yield Figure(
        f"{name}_bad",
        f"{text}: polls that failed",
        sum(not p.good for p in seen.polls),
        "polls",
        below=1,
    )
    for role, megabytes in seen.used.ended_mb.items():
        yield Figure(f"{name}_{role}_mb", f"{text}: memory of {role}", megabytes, "MB")
    for kept in seen.kept:
        yield Figure(
            f"{name}_{kept.name}", f"{text}: {kept.text}", kept.value, kept.unit, below=kept.below
        )


def _grid(size: Size, seen: Mapping[int, Watched]) -> Grid:
    every = list(seen.values())
    roles = list(every[0].role_ms)
    rows: list[Row] = [
        ("polls", "/s", [len(one.polls) / one.used.seconds for one in every]),
        ("CPU of a poll", "ms", [one.poll_ms for one in every]),
        *(
            (f"  {role}", "ms", [one.role_ms[role] for one in every])
            for role in roles
            if role != "agents"
        ),
        ("agents, apart", "ms", [one.role_ms["agents"] for one in every]),
        ("platform", "% of a core", [_share(one) for one in every]),
        ("one core carries", "devices", [size.interval_s * 1000 / one.poll_ms for one in every]),
        ("lateness, median", "ms", [quantile.of(one.late, 0.5) for one in every]),
        ("lateness, 99 %", "ms", [quantile.of(one.late, 0.99) for one in every]),
        *(
            (f"memory of {role}", "MB", [one.used.ended_mb[role] for one in every])
            for role in roles
        ),
    ]
    return Grid([f"{devices:,} devices" for devices in seen], rows)


def _share(seen: Watched) -> float:
    return (
        100
        * sum(spent for role, spent in seen.used.cpu_s.items() if role != "agents")
        / seen.used.seconds
    )


def _note(size: Size, largest: Watched) -> str:
    share = f"{_share(largest):.0f} % of a core"
    measured = f"{size.fleets[-1]:,} devices at {size.interval_s:g} s took {share}"
    return f'"carries" is computed as interval / CPU of a poll; measured: {measured}'


SECTION = Section(
    asks="what does a poll cost, and how late is it, when the fleet grows?",
    sizes={
        "full": Size((1_000, 10_000, 50_000), 60, 90),
        "small": Size((250, 1_000, 2_500), 10, 12),
        "tiny": Size((20, 60), 2, 3),
    },
    run=run,
)
