"""How long is a cluster without dispatch after its leader is lost? Are polls lost or doubled?"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import progress
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Stage
from tests.acceptance import faults
from tests.acceptance.cluster import Cluster
from tests.acceptance.faults import Fault

TARGETS, INTERVAL_S, POLL_S = 300, 1.0, 0.05
BEATS, WORKERS = 3, 2
GOALS_S = {faults.STOPPED.name: 1.0, **{fault.name: 5.0 for fault in faults.SUDDEN}}
#: The time after a fault in which every target is polled: its interval and some reserve.
ROUND_S = INTERVAL_S + 3


@dataclass(frozen=True, slots=True)
class Size:
    trials: int  # of each fault


def run(size: Size, stage: Stage) -> Findings:
    with _cluster(stage.home / "cluster") as cluster:
        figures = [
            figure
            for fault in (*faults.SUDDEN, faults.STOPPED)
            for figure in _figures(fault, size.trials, cluster)
        ]
    note = (
        f"{BEATS} beats, {WORKERS} workers, {TARGETS} targets at {INTERVAL_S:g} s; "
        "from the fault to the next poll"
    )
    return Findings(figures, notes=[note])


@contextmanager
def _cluster(directory: Path) -> Iterator[Cluster]:
    with Cluster(directory) as cluster:
        cluster.valkey.start()
        cluster.add_targets(TARGETS, INTERVAL_S, POLL_S)
        for _ in range(BEATS):
            cluster.start_beat()
        for _ in range(WORKERS):
            cluster.start_worker()
        cluster.all_polled(0, 60)
        yield cluster


def _figures(fault: Fault, trials: int, cluster: Cluster) -> list[Figure]:
    began, took, unpolled = time.time(), [], 0
    with progress.shown(fault.name, trials) as show:
        for number in range(trials):
            seconds, left = _trial(fault, cluster)
            took.append(seconds)
            unpolled += left
            show(number + 1)
        doubled = len(cluster.doubled(began))
    name, text = fault.name.replace(" ", "_").replace("-", "").lower(), f"{fault.name} x {trials}"
    return [
        Figure(f"{name}_min_s", f"{text}, shortest", min(took), "s"),
        Figure(f"{name}_median_s", f"{text}, median", statistics.median(took), "s"),
        Figure(f"{name}_max_s", f"{text}, longest", max(took), "s", below=GOALS_S[fault.name]),
        Figure(f"{name}_lost", f"{text}, targets lost or stranded", unpolled, "targets", below=1),
        Figure(f"{name}_doubled", f"{text}, polls doubled", doubled, "polls", below=1),
    ]


def _trial(fault: Fault, cluster: Cluster) -> tuple[float, int]:
    """Return the seconds without dispatch, and the number of targets not polled in time."""
    faults.ready(cluster)
    found = faults.take_over(cluster, fault.strike)
    until = time.monotonic() + ROUND_S
    while (left := cluster.unpolled(found.resumed)) and time.monotonic() < until:
        time.sleep(0.05)
    fault.mend(cluster, found.lost)
    return found.seconds, len(left)


SECTION = Section(
    asks="how long is a cluster without dispatch after its leader is lost?",
    sizes={"full": Size(20), "small": Size(3), "tiny": Size(1)},
    run=run,
)
