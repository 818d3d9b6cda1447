"""A fleet is polled into a store that is killed, frozen and restarted; then samples are counted.

    python -m tests.storm_sinks [--minutes 5] [--devices 1000] [--interval 60]
                                [--stores prometheus influxdb nats ...]

A beat, two workers, Valkey and simulated SNMP devices, all of them real processes. The database of
the cluster says what was polled. The exit status is 1 unless the store has every sample of every
stored poll exactly once; a limit of the store, such as the memory that it loses when it is killed,
is counted and named. Loopback only. A store is one entry of STORES.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from benchmarks import agents
from benchmarks.agents import PollRequest
from poller.db.history import polls_of_span
from poller.db.tables import devices as devices_table
from poller.db.tables import targets as targets_table
from poller.sim.sim_process import simulated
from tests import conftest
from tests.acceptance.cluster import Cluster, Program, soon
from tests.integration import store_contents
from tests.integration.store_contents import Polls
from tests.integration.store_servers import (
    HttpStoreServer,
    Influxdb,
    MockKafka,
    NatsServer,
    Prometheus,
    StoreServer,
    VictoriaMetrics,
)

#: A metric that every poll has exactly once.
METRIC = "sysUpTime"
#: How long the store is away, and the pause between two faults.
AWAY_S = 8.0
PAUSE_S = 12.0
#: Polls of a device that a storm stores at most.
MOST_POLLS = 100_000
SINK = "outside"
#: A killed Prometheus reads its log again before it answers.
READY_WITHIN_S = 180.0


class Store(NamedTuple):
    """A store of the storm: its server, the table of its sink, and what it has."""

    server: Callable[[Path], StoreServer]
    options: Callable[[Any], Mapping[str, Any]]
    totals: Callable[[Any, int], dict[str, int]]  # device -> samples of all series
    instants: Callable[[Any, int], dict[str, set[int]]]  # device -> instants of METRIC
    has_it_in_memory: bool = False  # the store acknowledges samples before they are on its disk
    faults: tuple[str, ...] = ("killed", "frozen", "restarted")


def _remote_write(server: HttpStoreServer) -> dict[str, Any]:
    # Without samples added at wraps, so that the samples of a poll are those of the device.
    return {
        "kind": "remote_write",
        "url": f"{server.url}/api/v1/write",
        "correct_counters": False,
    }


def _promql(server: HttpStoreServer, query: str) -> list[dict[str, Any]]:
    if isinstance(server, VictoriaMetrics):
        server.ask("/internal/force_flush")
    answer = json.loads(server.ask("/api/v1/query", query=query))
    return list(answer["data"]["result"])


def _promql_totals(server: HttpStoreServer, minutes: int) -> dict[str, int]:
    # One query for each metric: without their names, series of one row would be the same.
    names = json.loads(server.ask("/api/v1/label/__name__/values"))["data"]
    totals: Counter[str] = Counter()
    for name in names:
        match = f'{{__name__="{name}",collector="snmp"}}'
        query = f"sum by (device) (count_over_time({match}[{minutes}m]))"
        for series in _promql(server, query):
            totals[series["metric"]["device"]] += int(series["value"][1])
    return totals


def _promql_instants(server: HttpStoreServer, minutes: int) -> dict[str, set[int]]:
    instants: dict[str, set[int]] = {}
    for series in _promql(server, f"{METRIC}[{minutes}m]"):
        at_ms = {round(at_s * 1000) for at_s, _ in series["values"]}
        assert len(at_ms) == len(series["values"]), "an instant twice"
        instants[series["metric"]["device"]] = at_ms
    return instants


def _influx(server: Influxdb) -> dict[str, Any]:
    server.run("CREATE DATABASE storm")
    return {"kind": "influx", "url": server.url, "database": "storm"}


def _read_by(
    server: Callable[[Path], StoreServer],
    options: Callable[[Any], Mapping[str, Any]],
    read: Callable[[Any], Polls],
    **more: Any,
) -> Store:
    """Return a store whose polls are read one by one."""
    return Store(
        server,
        options,
        lambda store, _: store_contents.totals(read(store)),
        lambda store, _: store_contents.instants(read(store)),
        **more,
    )


STORES: Mapping[str, Store] = {
    "prometheus": Store(
        lambda directory: Prometheus(directory, window="1h"),
        _remote_write,
        _promql_totals,
        _promql_instants,
    ),
    "victoria": Store(
        VictoriaMetrics, _remote_write, _promql_totals, _promql_instants, has_it_in_memory=True
    ),
    "influxdb": _read_by(
        Influxdb, _influx, lambda server: store_contents.in_influxdb(server, "storm")
    ),
    "victoria-influx": _read_by(
        VictoriaMetrics,
        lambda server: {"kind": "influx", "url": server.url},
        lambda server: store_contents.in_victoria(server, '{collector="snmp"}'),
        has_it_in_memory=True,
    ),
    "nats": _read_by(
        NatsServer,
        lambda server: {"kind": "nats", "servers": [server.url], "create_stream": True},
        store_contents.in_nats,
    ),
    # The mock brokers have no disk: they can only be frozen.
    "kafka": _read_by(
        MockKafka,
        lambda server: {"kind": "kafka", "servers": [server.broker]},
        lambda server: store_contents.in_kafka(server, "poller.readings"),
        faults=("frozen",),
    ),
}


class Strikes:
    """Kills, freezes and restarts the server in turns, until the time is over."""

    def __init__(
        self, server: StoreServer, store: Store, workers: Sequence[Program], window_m: int
    ) -> None:
        #: Device and instant of polls that the store had shortly before it was killed.
        self.seen: set[tuple[str, int]] = set()
        self.counts = dict.fromkeys(store.faults, 0)
        self._server = server
        self._store = store
        self._workers = workers
        self._window_m = window_m

    def run(self, until_mono: float) -> None:
        known = {"killed": self._kill, "frozen": self._freeze, "restarted": self._restart}
        faults = [known[fault] for fault in self.counts]
        number = 0
        while time.monotonic() + PAUSE_S + AWAY_S < until_mono:
            time.sleep(PAUSE_S)
            faults[number % len(faults)]()
            number += 1
        time.sleep(max(0.0, until_mono - time.monotonic()))

    def _kill(self) -> None:
        self.counts["killed"] += 1
        if self._store.has_it_in_memory:
            self._kill_between_writes()
        self._server.kill()
        time.sleep(AWAY_S)
        self._server.start()

    def _kill_between_writes(self) -> None:
        """Kill the server while no worker writes, and note what it had."""
        for worker in self._workers:
            worker.freeze()
        before: set[tuple[str, int]] | None = None
        had = self._polls_in_store()
        while had != before:  # the server ends the last requests
            time.sleep(1.0)
            before, had = had, self._polls_in_store()
        self.seen |= had
        self._server.kill()
        for worker in self._workers:
            worker.thaw()

    def _polls_in_store(self) -> set[tuple[str, int]]:
        instants = self._store.instants(self._server, self._window_m)
        return {(device, at_ms) for device, all_ms in instants.items() for at_ms in all_ms}

    def _freeze(self) -> None:
        self.counts["frozen"] += 1
        self._server.freeze()
        time.sleep(AWAY_S)
        self._server.thaw()

    def _restart(self) -> None:
        self.counts["restarted"] += 1
        self._server.stop()
        time.sleep(AWAY_S)
        self._server.start()


class Polled(NamedTuple):
    """What the database has: per device, samples of each instant."""

    polls: dict[str, dict[int, int]]

    @property
    def samples(self) -> int:
        return sum(sum(instants.values()) for instants in self.polls.values())


def polled(cluster: Cluster) -> Polled:
    engine = cluster.services.engine
    query = sa.select(targets_table.c.id, devices_table.c.name).join(
        devices_table, devices_table.c.id == targets_table.c.device_id
    )
    with engine.connect() as connection:
        names = {row.id: row.name for row in connection.execute(query)}
    found: dict[str, dict[int, int]] = {}
    for target_id, polls in polls_of_span.newest(engine, names, MOST_POLLS).items():
        of_device = found.setdefault(names[target_id], {})
        of_device.update((poll.at_ms, len(poll.readings.values)) for poll in polls)
    return Polled(found)


def spooled(cluster: Cluster) -> int:
    files = (cluster.directory / "home" / "spool").glob(f"*/sink-{SINK}/*.rounds")
    return sum(1 for _ in files)


def storm(name: str, store: Store, arguments: argparse.Namespace, directory: Path) -> bool:
    """Run one storm and say what it found. Returns whether every sample is there once."""
    devices = agents.devices(arguments.devices)
    server = store.server(directory / name)
    server.start()
    tables = json.dumps({SINK: store.options(server)})
    settings = {"POLLER_SINKS": f"sql,{SINK}", "POLLER_SINK": tables}
    try:
        with (
            simulated(devices) as ports,
            Cluster(directory / f"{name}-cluster", **settings) as cluster,
        ):
            cluster.valkey.start()
            request = PollRequest(arguments.interval, modules=("system", "if_mib"))
            agents.store(cluster.services, devices, ports.snmp, request)
            for _ in range(2):
                cluster.start_worker()
            beat = cluster.start_beat()
            strikes = Strikes(server, store, cluster.workers, int(arguments.minutes) + 10)
            strikes.run(time.monotonic() + arguments.minutes * 60)
            beat.terminate()
            beat.wait(30)
            return settle(name, store, server, cluster, strikes, arguments)
    finally:
        server.stop()


def settle(
    name: str,
    store: Store,
    server: StoreServer,
    cluster: Cluster,
    strikes: Strikes,
    arguments: argparse.Namespace,
) -> bool:
    """Let the workers write what waits, and compare the store with the database."""
    time.sleep(min(arguments.interval, 10.0))  # polls that were queued end, or expire
    soon(lambda: not spooled(cluster), 120, "an empty spool")
    for worker in cluster.workers:
        worker.terminate()
    for worker in cluster.workers:
        worker.wait(60)

    expected = polled(cluster)
    window_m = int(arguments.minutes) + 10
    totals = store.totals(server, window_m)
    instants = store.instants(server, window_m)
    missing = {
        (device, at_ms): samples
        for device, polls in expected.polls.items()
        for at_ms, samples in polls.items()
        if at_ms not in instants.get(device, set())
    }
    unplanned = sum(
        len(at_ms - set(expected.polls.get(device, {}))) for device, at_ms in instants.items()
    )
    explained = {key: samples for key, samples in missing.items() if key in strikes.seen}
    polls = sum(len(each) for each in expected.polls.values())
    stored = sum(totals.values())
    lost = sum(explained.values())
    struck = ", ".join(f"{times} x {fault}" for fault, times in strikes.counts.items())
    print(f"{name}: {len(expected.polls):,} devices, {polls:,} polls, {struck}")
    print(
        f"  polled {expected.samples:,} samples, in the store {stored:,}, unplanned {unplanned:,}"
    )
    if explained:
        print(f"  {lost:,} samples were in the store before a kill, and in its memory only")
    if missing != explained:
        print(f"  {len(missing) - len(explained):,} polls are missing without a reason")
    is_exact = expected.samples - lost == stored and missing == explained and not unplanned
    print(f"  {'every sample is there once' if is_exact else 'SAMPLES ARE MISSING OR DOUBLED'}")
    return is_exact and polls > 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.storm_sinks")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--interval", type=float, default=60.0)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=list(STORES))
    arguments = parser.parse_args()
    conftest.READY_WITHIN_S = READY_WITHIN_S
    HttpStoreServer.answer_within_s = READY_WITHIN_S
    results = []
    for name in arguments.stores:
        with tempfile.TemporaryDirectory(prefix="poller-storm-") as directory:
            results.append(storm(name, STORES[name], arguments, Path(directory)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
