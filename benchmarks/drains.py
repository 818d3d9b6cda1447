"""Several drains at work: together they take the part of a large number of workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stage import Stage


@dataclass(frozen=True, slots=True)
class Drained:
    """What they saw: by whole second of the board's clock, how many targets were how many ms late."""

    late: Mapping[int, Counter[int]]
    refused: int  # starts and finishes that were not `ok`

    def between(self, begin: int, end: int) -> Counter[int]:
        """Lateness in ms -> targets, of the seconds from `begin` up to `end`."""
        return sum(
            (counts for second, counts in self.late.items() if begin <= second < end), Counter()
        )

    @property
    def peak(self) -> int:
        """The most targets started in one second."""
        return max((counts.total() for counts in self.late.values()), default=0)


class Drains:
    def __init__(self, stage: Stage, number: int, interval_s: int) -> None:
        self._stage = stage
        self._results = [stage.home / f"drain{n}.json" for n in range(number)]
        self._processes = [
            stage.start(path.stem, ["-m", "benchmarks.drain", str(path), str(interval_s * 1000)])
            for path in self._results
        ]

    @property
    def cpu_s(self) -> float:
        return sum(process.cpu_s for process in self._processes)

    def stop(self) -> Drained:
        """When nothing is published any more: they end when their queues are empty."""
        for process in self._processes:
            self._stage.stop(process)
        return _merged(self._results)


def _merged(results: list[Path]) -> Drained:
    late: dict[int, Counter[int]] = {}
    refused = 0
    for path in results:
        told = json.loads(path.read_text())
        refused += sum(told["refused"].values())
        for second, counts in told["late"].items():
            late.setdefault(int(second), Counter()).update(
                {int(ms): number for ms, number in counts.items()}
            )
    return Drained(late, refused)
