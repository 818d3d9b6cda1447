"""Several drain processes, which together replace a large number of workers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.stage import Stage


@dataclass(frozen=True, slots=True)
class Drained:
    """The results of the drains: per second of the board's clock, lateness in ms -> targets."""

    late: Mapping[int, Counter[int]]
    batches: Counter[int]  # per second
    refused: int  # starts and finishes that were not `ok`

    def between(self, begin: int, end: int) -> Counter[int]:
        """Return lateness in ms -> targets, for the seconds from `begin` up to `end`."""
        return sum(
            (counts for second, counts in self.late.items() if begin <= second < end), Counter()
        )

    def batches_between(self, begin: int, end: int) -> int:
        """Return the number of batches in the seconds from `begin` up to `end`."""
        return sum(number for second, number in self.batches.items() if begin <= second < end)

    @property
    def peak(self) -> int:
        """The maximum number of targets started in one second."""
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
        """Stop the drains after publishing has ended. They end when their queues are empty."""
        for process in self._processes:
            self._stage.stop(process)
        return _merged(self._results)


def _merged(results: list[Path]) -> Drained:
    late: dict[int, Counter[int]] = {}
    batches: Counter[int] = Counter()
    refused = 0
    for path in results:
        result = json.loads(path.read_text())
        refused += sum(result["refused"].values())
        for second, number in result["batches"].items():
            batches[int(second)] += number
        for second, counts in result["late"].items():
            late.setdefault(int(second), Counter()).update(
                {int(ms): number for ms, number in counts.items()}
            )
    return Drained(late, batches, refused)
