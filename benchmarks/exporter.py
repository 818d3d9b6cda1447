"""Debian's prometheus-snmp-exporter with our module on the same agents, if it is installed."""

from __future__ import annotations

import http.client
import itertools
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from benchmarks import agents, cluster, if_mib, progress
from benchmarks.equal import Sample
from benchmarks.roles import Meter, Used
from poller import errors
from poller.cli.up import listen_ports
from poller.sim import fleet

PROGRAM = "prometheus-snmp-exporter"
HINT = f"deploy/packages {PROGRAM}"
PATIENCE_S = 10.0
CONNECTIONS = 8
_OWN = "snmp_scrape_"  # metrics about the exporter itself


@dataclass(frozen=True, slots=True)
class Measured:
    used: Used
    polls: int
    late: Counter[int]  # ms from the planned time to the request -> polls


@dataclass(frozen=True, slots=True)
class Exporter:
    pid: int
    port: int
    agents_port: int

    def scrape(self, address: str) -> tuple[dict[Sample, float], int]:
        """Return the samples of a device, and the number of variables behind them."""
        found = self._samples(address)
        returned = f"{_OWN}pdus_returned"  # newer versions have it by module
        variables = sum(value for sample, value in found.items() if sample.name == returned)
        return {
            sample: value for sample, value in found.items() if not sample.name.startswith(_OWN)
        }, int(variables)

    def packets(self, address: str) -> float | None:
        """Return the number of requests of one scrape; None if this version does not count."""
        return self._samples(address).get(Sample(f"{_OWN}packets_sent", frozenset()))

    def _samples(self, address: str) -> dict[Sample, float]:
        """Return all samples, including those about the exporter."""
        with _connection(self.port) as conn:
            text = _scrape(conn, self.path(address)).decode()
        found: dict[Sample, float] = {}
        for one in (
            one for family in text_string_to_metric_families(text) for one in family.samples
        ):
            name = one.name.removesuffix(
                "_total"
            )  # added by the parser: no counter of the module has this name
            found[Sample(name, frozenset(one.labels.items()))] = one.value
        return found

    def measure(
        self, addresses: Sequence[str], per_s: float, seconds: float, rounds: int = 1
    ) -> Measured:
        """Scrape the devices at this rate, evenly spread and over persistent connections, after
        some rounds of all devices.

        Prometheus also requests compression; without it the exporter has slightly less work.
        """
        scraper = _Scraper(self, addresses, per_s)
        with scraper.running():
            warm_s = rounds * max(2.0, len(addresses) / per_s)
            progress.wait("warming the exporter up", warm_s if rounds > 1 else min(seconds, warm_s))
            meter, before = Meter({"exporter": [self.pid]}), scraper.count
            progress.wait("measuring the exporter", seconds)
            used, polls = meter.read(), scraper.count - before
        return Measured(used, polls, scraper.late)

    def path(self, address: str) -> str:
        return f"/snmp?target={address}:{self.agents_port}&module={if_mib.NAME}"


def installed() -> str | None:
    return shutil.which(PROGRAM)


@contextmanager
def running(folder: Path, agents_port: int) -> Iterator[Exporter]:
    """Run the exporter on a free port of loopback, with only our module."""
    config, port = folder / "snmp.yml", listen_ports.free_port()
    how = {
        "version": 2,
        "auth": {"community": fleet.COMMUNITY},
        "max_repetitions": agents.REPETITIONS,
    }
    config.write_text(yaml.safe_dump({if_mib.NAME: {**if_mib.module(), **how}}))
    command = [
        PROGRAM,
        f"--config.file={config}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with (folder / "exporter.log").open("w") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        cluster.until("starting the exporter", 1, lambda: _answers(port), PATIENCE_S, every_s=0.05)
        yield Exporter(child.pid, port, agents_port)
    finally:
        child.terminate()
        child.wait()


def _answers(port: int) -> bool:
    try:
        with _connection(port) as conn:
            conn.request("GET", "/")
            return conn.getresponse().status == 200
    except OSError:
        return False


@contextmanager
def _connection(port: int) -> Iterator[http.client.HTTPConnection]:
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        yield conn
    finally:
        conn.close()


def _scrape(conn: http.client.HTTPConnection, path: str) -> bytes:
    """Scrape one device. Raises StoreUnavailable with the message of the exporter."""
    conn.request("GET", path, headers={"Accept-Encoding": "identity"})
    answer = conn.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise errors.StoreUnavailable(
            "the exporter failed a scrape", body.decode(errors="replace").strip()[:200]
        )
    return body


class _Scraper:
    """Scrapes from several threads at planned times, and counts the lateness."""

    def __init__(self, exporter: Exporter, addresses: Sequence[str], per_s: float) -> None:
        self._late = [Counter[int]() for _ in range(CONNECTIONS)]
        self._paths = [exporter.path(address) for address in addresses]
        self._port, self._per_s = exporter.port, per_s
        self._done = [0] * CONNECTIONS
        self._errors: list[Exception] = []
        self._stopped = threading.Event()

    @property
    def count(self) -> int:
        if self._errors:
            raise self._errors[0]
        return sum(self._done)

    @property
    def late(self) -> Counter[int]:
        return sum(self._late, Counter())

    @contextmanager
    def running(self) -> Iterator[None]:
        began = time.monotonic()
        threads = [
            threading.Thread(target=self._run, args=(number, began))
            for number in range(CONNECTIONS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()

    def _run(self, number: int, began: float) -> None:
        try:
            with _connection(self._port) as conn:
                for turn in itertools.count(number, CONNECTIONS):
                    planned = began + turn / self._per_s
                    if self._stopped.wait(max(0.0, planned - time.monotonic())):
                        return
                    self._late[number][round((time.monotonic() - planned) * 1000)] += 1
                    _scrape(conn, self._paths[turn % len(self._paths)])
                    self._done[number] += 1
        except Exception as error:
            self._errors.append(error)
