"""The same day in InfluxDB 1, as Telegraf writes it: a point for each interface and poll."""

from __future__ import annotations

import shutil
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import cpu, progress
from benchmarks.believable_day import Day
from poller import errors
from poller.domain.metrics.reading import SeriesSet
from tests.integration.store_servers import Influxdb

PROGRAM = "influxd"
HINT = "deploy/packages influxdb"
_DATABASE = "day"
#: Polls of a device in one request.
_POLLS = 60
#: The time until all points are in compacted files.
PATIENCE_S = 120.0
_STILL_S = 6.0


@dataclass(frozen=True, slots=True)
class InfluxDay:
    """Bytes of the files of points, without the index of series, and CPU of the server."""

    bytes: int
    cpu_s: float


class _Compacting(Influxdb):
    """InfluxDB that compacts a shard as soon as nothing is written to it."""

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def command(self) -> list[str]:
        made = super().command()
        config = Path(made[-1])
        soon = (
            'cache-snapshot-write-cold-duration = "2s"\ncompact-full-write-cold-duration = "2s"\n'
        )
        config.write_text(config.read_text().replace("[data]\n", "[data]\n" + soon))
        return made


def installed() -> bool:
    return shutil.which(PROGRAM) is not None


def stored(folder: Path, days: Sequence[Day]) -> InfluxDay:
    """Write days into a private server, and wait until it has compacted them."""
    folder.mkdir(exist_ok=True)
    server = _Compacting(folder)
    server.start()
    try:
        server.run(f'CREATE DATABASE "{_DATABASE}"')
        with progress.shown("InfluxDB, a day", len(days)) as show:
            for number, day in enumerate(days):
                for body in _requests(f"d{number}", day):
                    url = f"{server.url}/write?db={_DATABASE}&precision=ms"
                    urllib.request.urlopen(url, body.encode(), timeout=60).close()
                show(number)
        size = _compacted_bytes(folder)
        return InfluxDay(size, cpu.seconds(server.pid))
    finally:
        server.stop()


def _compacted_bytes(folder: Path) -> int:
    """Wait until the log is empty and the files of points change no more; return their size."""
    until_mono = time.monotonic() + PATIENCE_S
    last, since_mono = (-1, -1), time.monotonic()
    while time.monotonic() < until_mono:
        found = (_bytes(folder / "data", "*.tsm"), _bytes(folder / "wal", "*.wal"))
        if found != last:
            last, since_mono = found, time.monotonic()
        elif found[0] and not found[1] and time.monotonic() - since_mono > _STILL_S:
            return found[0]
        time.sleep(0.2)
    raise errors.StoreUnavailable("InfluxDB did not compact the points", hint="see its log")


def _bytes(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.rglob(pattern))


def _requests(device: str, day: Day) -> Iterator[str]:
    points = _points(day.shape)
    instants = day.at_ms.tolist()
    for begin in range(0, len(instants), _POLLS):
        lines = []
        for poll in range(begin, min(begin + _POLLS, len(instants))):
            for tags, columns in points:
                fields = ",".join(
                    f"{name}={day.values[column, poll]:.0f}i" for name, column in columns
                )
                lines.append(f"interface,device={device}{tags} {fields} {instants[poll]}")
        yield "\n".join(lines)


def _points(shape: SeriesSet) -> list[tuple[str, list[tuple[str, int]]]]:
    """Return the tags and the fields of the points of a poll."""
    by_port: dict[str, list[tuple[str, int]]] = {}
    for column, series in enumerate(shape.series):
        port = dict(series.labels).get("ifName", "")
        by_port.setdefault(port, []).append((series.name, column))
    return [(f",ifName={port}" if port else "", fields) for port, fields in by_port.items()]
