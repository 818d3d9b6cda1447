"""What does a sink cost a worker per poll of if_mib, beside the SQL sink?

The store takes everything and stores nothing, in a process of its own: only the worker's CPU is
counted. `first` is the first poll of a target, for which nothing is cached; a fleet that is larger
than the cache of a worker pays that for every poll.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks import progress
from benchmarks.section import Figure, Findings, Grid, Section
from benchmarks.sink_polls import SinkPolls
from benchmarks.stage import Process, Stage
from poller.cli.up import listen_ports
from poller.sinks.api import Sink, Stores
from poller.sinks.bus.stream import StreamSink
from poller.sinks.metric_stores.influx import InfluxOptions, InfluxSink
from poller.sinks.metric_stores.otlp import OtlpOptions, OtlpSink
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.remote_write.options import RemoteWriteOptions
from poller.sinks.sql import SqlSink

REMOTE_WRITE_MS = 0.1
#: Polls of one call, at most.
CALL_POLLS = 256
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Size:
    targets: int
    rounds: int  # after the first; the median counts


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU per poll, in ms."""

    first_ms: float
    later_ms: float


#: Makes a sink. `url` is that of a store that takes every HTTP request.
Make = Callable[[Stores, str], Sink]


def _remote_write(**options: Any) -> Make:
    def make(stores: Stores, url: str) -> Sink:
        return RemoteWriteSink(stores, RemoteWriteOptions(url=f"{url}/api/v1/write", **options))

    return make


#: Every sink that is measured, by the name of its figures.
CANDIDATES: Mapping[str, Make] = {
    "sql": lambda stores, _: SqlSink(stores),
    "stream": lambda stores, _: StreamSink(stores),
    "remote_write": _remote_write(),
    "remote_write_raw": _remote_write(correct_counters=False),
    "remote_write_2": _remote_write(protocol="2.0"),
    "influx": lambda stores, url: InfluxSink(stores, InfluxOptions(url=url, database="bench")),
    "otlp": lambda stores, url: OtlpSink(stores, OtlpOptions(url=f"{url}/v1/metrics")),
}
GOALS = {"remote_write": REMOTE_WRITE_MS}


def run(size: Size, stage: Stage) -> Findings:
    port = listen_ports.free_port()
    store = stage.start("null-store", ["-m", "benchmarks.null_store", str(port)])
    _wait_for(port, store)
    polls = SinkPolls(size.targets, time.time_ns() // 1_000_000 - DAY_MS)
    costs = {}
    for name, make in CANDIDATES.items():
        services = stage.services
        stores = Stores(services.engine, services.redis, services.settings, name)
        costs[name] = _cost(name, make(stores, f"http://127.0.0.1:{port}"), polls, size)
    stage.stop(store)
    return Findings(
        [figure for name, cost in costs.items() for figure in _figures(name, cost)],
        notes=[f"{polls.samples} samples a poll, {size.targets} targets with shapes of their own"],
        grid=Grid(
            list(costs),
            [
                ("a poll", "ms CPU", [cost.later_ms for cost in costs.values()]),
                ("first poll of a target", "ms CPU", [cost.first_ms for cost in costs.values()]),
            ],
        ),
    )


def _figures(name: str, cost: Cost) -> list[Figure]:
    goal_ms = GOALS.get(name)
    return [
        Figure(f"{name}_ms", f"{name}, a poll", cost.later_ms, "ms CPU", at_most=goal_ms),
        Figure(f"{name}_first_ms", f"{name}, first poll of a target", cost.first_ms, "ms CPU"),
    ]


def _cost(name: str, sink: Sink, polls: SinkPolls, size: Size) -> Cost:
    """Return the CPU of this process per poll: of the first round, and the median of the others."""
    first_ms = _round_ms(sink, polls)
    later_ms = []
    with progress.shown(name, size.rounds) as show:
        for number in range(size.rounds):
            later_ms.append(_round_ms(sink, polls))
            show(number)
    sink.close()
    return Cost(first_ms, statistics.median(later_ms))


def _round_ms(sink: Sink, polls: SinkPolls) -> float:
    samples = polls.round()
    began = time.process_time()
    for first in range(0, len(samples), CALL_POLLS):
        sink.write(samples[first : first + CALL_POLLS])
    return (time.process_time() - began) * 1000 / len(samples)


def _wait_for(port: int, store: Process) -> None:
    """Wait until the store listens. Raises StoreUnavailable if it ends."""
    while True:
        store.must_live()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return


SECTION = Section(
    asks="what does each sink cost a worker?",
    sizes={"full": Size(1024, 9), "small": Size(512, 5), "tiny": Size(32, 1)},
    run=run,
)
