"""The metrics of all processes of a host are behind one address, whoever dies."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.valkey import free_port

pytestmark = pytest.mark.timeout(120)

LEASES = "poller_leases_total"
Values = dict[tuple[str, str], float]  # name and process -> sum over the other labels


def parse(text: str) -> Values:
    values: Values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, sample.labels["process"]
            values[key] = values.get(key, 0.0) + sample.value
    return values


def scrape(port: int) -> Values:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return parse(answer.read().decode())
    except OSError:
        return {}


def listener(port: int, programs: list[Program]) -> Program | None:
    """The program that listens on a port, by the tables of the kernel."""
    wanted = f"0100007F:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if row[1] == wanted and row[3] == "0A"}
    for program in programs:
        files = Path(f"/proc/{program.pid}/fd")
        if program.runs and inodes & {os.readlink(file) for file in files.iterdir()}:
            return program
    return None


def test_one_address_shows_all_processes_of_a_host_after_any_death(tmp_path: Path) -> None:
    """A scheduler, a worker with threads and a worker with children are exposed together; after
    `kill -9` of the process that serves, another one serves, without the dead one.
    """
    port = free_port()
    file = tmp_path / "poller.prom"
    places = {
        "POLLER_BATCH_SIZE": "4",
        "POLLER_METRICS_PORT": str(port),
        "POLLER_METRICS_FILE": str(file),
    }
    with Cluster(tmp_path, **places) as cluster:
        cluster.valkey.start()
        cluster.add_targets(160, 2.0)  # so many that each worker is the home of some
        beat = cluster.start_beat()
        threads = cluster.start_worker()
        prefork = cluster.start_worker("-P", "prefork", "-c", "2")
        children = {f"{prefork.name}/1", f"{prefork.name}/2"}
        names = {"beat", threads.name, prefork.name, *children}

        def complete() -> Values | None:
            values = scrape(port)
            has_all = names <= {process for _, process in values}
            of_children = sum(values.get((LEASES, child), 0) for child in children)
            has_polled = values.get((LEASES, threads.name), 0) and of_children
            return values if has_all and has_polled else None

        values = soon(complete, 40, "all processes are exposed, and have polled")
        assert values["poller_claimed_targets_total", "beat"] > 0
        assert values["poller_leadership_total", "beat"] == 1
        assert values["poller_redis_seconds_count", threads.name] > 0
        assert values["poller_sql_seconds_count", threads.name] > 0
        assert values["poller_write_seconds_count", threads.name] > 0

        def written() -> Values | None:
            values = parse(file.read_text()) if file.exists() else {}
            return values if names <= {process for _, process in values} else None

        assert soon(written, 20, "the file has all processes")

        serving = soon(lambda: listener(port, [beat, threads, prefork]), 5, "one serves")
        serving.kill()
        gone = {"beat"} if serving is beat else {serving.name}
        left = {"beat", threads.name, prefork.name} - gone

        def taken_over() -> bool:
            processes = {process for _, process in scrape(port)}
            return left <= processes and not gone & processes

        soon(taken_over, 10, "another process serves, without the dead one")
