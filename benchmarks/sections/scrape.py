"""What does a scrape of the whole fleet's last values cost, and how much memory does it take?"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import cluster, fleet, memory, progress
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Process, Stage
from poller import errors
from poller.cli.up import listen_ports
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.batched import batched
from poller.domain.metrics.reading import Kind, Reading, ReadingSet

_ANSWER_S = 600
_READY_S = 60
_READ_BYTES = 1 << 20
_BATCH = 500
_COLUMNS = 38


@dataclass(frozen=True, slots=True)
class Size:
    targets: int  # with 4 interfaces of 38 columns each


def run(size: Size, stage: Stage) -> Findings:
    engine = stage.services.engine
    fleet.store(engine, size.targets, interval_s=86_400, domains=1)
    _store_readings(size, stage)
    port = listen_ports.free_port()
    web = stage.start("web", ["-m", "poller", "web"], POLLER_WEB_PORT=str(port))
    cluster.until("starting the web role", 1, lambda: _is_ready(port, web), _READY_S)
    return Findings(list(_measure(size, port, web)))


def _store_readings(size: Size, stage: Stage) -> None:
    """Store one poll of every target. The labels of every device are its own."""
    writer = stored_readings.Writer(stage.services.engine)
    now_ms = time.time_ns() // 1_000_000
    with progress.shown(f"storing {size.targets:,} polls", size.targets) as show:
        for ids in batched(range(1, size.targets + 1), _BATCH):
            polls = [Stored(target_id, now_ms, _readings(target_id)) for target_id in ids]
            writer.write(polls, now_ms)
            show(ids[-1])


def _readings(target_id: int) -> ReadingSet:
    found = []
    for port in range(4):
        labels = {"ifIndex": str(port), "ifName": f"ge-0/0/{port}", "ifAlias": f"to {target_id}"}
        for column in range(_COLUMNS):
            value = float(1_000_000_007 * target_id + column)
            found.append(Reading(f"ifColumn{column}", value, labels, Kind.COUNTER, 64))
    return ReadingSet.of(found)


def _is_ready(port: int, web: Process) -> bool:
    web.must_live()
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except OSError:
        return False


def _measure(size: Size, port: int, web: Process) -> Iterator[Figure]:
    idle_mb = memory.megabytes(web.pid)
    series = size.targets * 4 * _COLUMNS
    for name, label in (("first", "first scrape"), ("next", "next scrape")):
        before_s = web.cpu_s
        began = time.monotonic()
        with progress.shown(f"{label} of {series:,} series", 1), _PeakMemory(web) as peak:
            lines, length = _scrape(port)
        took_s = time.monotonic() - began
        cpu_us = (web.cpu_s - before_s) / series * 1e6
        if lines < series:
            raise errors.StoreConflict(f"the scrape has {lines:,} lines for {series:,} series")
        yield Figure(f"{name}_s", f"{label} of {series:,} series", took_s, "s")
        yield Figure(f"{name}_cpu_us", f"{label}, CPU of a series", cpu_us, "us")
        grown = peak.megabytes - idle_mb
        yield Figure(f"{name}_mb", f"{label}, more memory than idle", grown, "MB", below=400)
    yield Figure("scrape_mb", "text of a scrape", length / 1e6, "MB")


def _scrape(port: int) -> tuple[int, int]:
    """Read one scrape in pieces. Returns its lines and bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
    headers = {"X-Prometheus-Scrape-Timeout-Seconds": str(_ANSWER_S)}
    connection.request("GET", "/metrics/readings", headers=headers)
    response = connection.getresponse()
    if response.status != 200:
        raise errors.StoreUnavailable(f"GET /metrics/readings: HTTP {response.status}")
    lines = length = 0
    while chunk := response.read(_READ_BYTES):
        lines += chunk.count(b"\n")
        length += len(chunk)
    return lines, length


class _PeakMemory:
    """The largest memory of a process while the context lasts."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.megabytes = 0.0

    def __enter__(self) -> _PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.2):
            self.megabytes = max(self.megabytes, memory.megabytes(self._process.pid))


SECTION = Section(
    asks="what does a scrape of the whole fleet's last values cost, and how much memory?",
    sizes={"full": Size(66_000), "small": Size(5_000), "tiny": Size(50)},
    run=run,
)
