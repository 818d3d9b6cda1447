"""A plugin package with many trivial jobs, written into a directory for PYTHONPATH."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

DISTRIBUTION = "bench-jobs"
MODULE = "bench_jobs"

_MODULE = '''"""Jobs that only return."""

from poller.jobs import api


def _trivial(context):
    return api.Result(rows_affected=1)


for _name, _every_s, _delay_s in {jobs!r}:
    globals()[_name] = api.job(name=_name, every_s=_every_s, delay_s=_delay_s)(_trivial)
'''


@dataclass(frozen=True, slots=True)
class TrivialJob:
    """A job that only returns. It is due `delay_s` after every multiple of its cadence."""

    name: str
    every_s: float
    delay_s: float

    def due_ms(self, begin_ms: int, end_ms: int) -> list[int]:
        """Its plans that are due between two instants."""
        every_ms, delay_ms = round(self.every_s * 1000), round(self.delay_s * 1000)
        first_ms = -(-(begin_ms - delay_ms) // every_ms) * every_ms
        return list(range(first_ms, end_ms - delay_ms, every_ms))


def together(number: int, every_s: float) -> list[TrivialJob]:
    """Jobs that are all due at the same instant."""
    return [TrivialJob(f"together_{n:04}", every_s, 0.0) for n in range(number)]


def spread(number: int, every_s: float) -> list[TrivialJob]:
    """Jobs that are due one after the other."""
    return [
        TrivialJob(f"spread_{n:04}", every_s, round(every_s * n / number, 3)) for n in range(number)
    ]


def write(folder: Path, jobs: Sequence[TrivialJob]) -> None:
    """Write the package with its entry points, as an installer would."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [(job.name, job.every_s, job.delay_s) for job in jobs]
    (folder / f"{MODULE}.py").write_text(_MODULE.format(jobs=rows))
    metadata = folder / f"{MODULE}-1.0.dist-info"
    metadata.mkdir()
    head = f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 1.0\n"
    (metadata / "METADATA").write_text(head)
    points = "".join(f"{job.name} = {MODULE}:{job.name}\n" for job in jobs)
    (metadata / "entry_points.txt").write_text(f"[poller.jobs]\n{points}")
