"""The same day in RRD files, as Cacti and LibreNMS keep it: a file for each interface."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.believable_day import Day
from poller.domain.metrics.reading import Kind, SeriesSet

PROGRAM = "rrdtool"
HINT = f"deploy/packages {PROGRAM}"
#: Archives of a day: each minute; five minutes and an hour with mean, lowest and highest.
ARCHIVES = (
    "RRA:AVERAGE:0.5:1:1440",
    *(f"RRA:{kind}:0.5:5:288" for kind in ("AVERAGE", "MIN", "MAX")),
    *(f"RRA:{kind}:0.5:60:24" for kind in ("AVERAGE", "MIN", "MAX")),
)
RAW_ROWS = 1440
_ROLLED_ROWS = 3 * (288 + 24)


@dataclass(frozen=True, slots=True)
class RrdDay:
    """Bytes of all files, and CPU of their updates."""

    bytes: int
    cpu_s: float
    polls: int

    @property
    def raw_bytes(self) -> float:
        """The part of the archive of minutes: RRD files have eight bytes for every value."""
        return self.bytes * RAW_ROWS / (RAW_ROWS + _ROLLED_ROWS)

    @property
    def rolled_bytes(self) -> float:
        return self.bytes - self.raw_bytes


def installed() -> bool:
    return shutil.which(PROGRAM) is not None


def stored(folder: Path, days: Sequence[Day]) -> RrdDay:
    """Write days with one rrdtool, which reads commands from a pipe, and measure it."""
    folder.mkdir(exist_ok=True)
    commands = folder / "commands"
    with commands.open("w") as file:
        for number, day in enumerate(days):
            for line in _commands(f"d{number}", day):
                file.write(line + "\n")
    with commands.open() as lines, (folder / "log").open("w") as log:
        child = subprocess.Popen([PROGRAM, "-"], stdin=lines, stdout=log, cwd=folder)
        usage = _wait(child)
    size = sum(path.stat().st_size for path in folder.glob("*.rrd"))
    return RrdDay(size, usage, sum(len(day.at_ms) for day in days))


def _wait(child: subprocess.Popen[bytes]) -> float:
    """Return the CPU time of a process that ends by itself."""
    _, _, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    return usage.ru_utime + usage.ru_stime


def _commands(device: str, day: Day) -> Iterator[str]:
    places = _files(day.shape)
    start_s = int(day.at_ms[0]) // 1000 - 60
    for number, columns in enumerate(places):
        sources = " ".join(_source(day.shape, column) for column in columns)
        archives = " ".join(ARCHIVES)
        yield f"create {device}-{number}.rrd --start {start_s} --step 60 {sources} {archives}"
    seconds = np.maximum.accumulate(day.at_ms // 1000).tolist()
    last_s = start_s
    for poll, at_s in enumerate(seconds):
        if at_s <= last_s:
            continue
        last_s = at_s
        for number, columns in enumerate(places):
            values = ":".join(f"{day.values[column, poll]:.0f}" for column in columns)
            yield f"update {device}-{number}.rrd {at_s}:{values}"


def _files(shape: SeriesSet) -> list[list[int]]:
    """Return the series of each file: those of an interface, and the rest."""
    by_port: dict[str, list[int]] = {}
    for column, series in enumerate(shape.series):
        by_port.setdefault(dict(series.labels).get("ifName", ""), []).append(column)
    return list(by_port.values())


def _source(shape: SeriesSet, column: int) -> str:
    kind = "DERIVE" if shape.kinds[column] is Kind.COUNTER else "GAUGE"
    return f"DS:s{column}:{kind}:180:U:U"
