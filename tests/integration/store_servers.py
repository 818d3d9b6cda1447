"""Real servers of stores that sinks write to, which a test kills, freezes and starts again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from tests.conftest import missing, wait_until


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class StoreServer:
    """A server with a port and a directory of its own; both outlive its process."""

    program = ""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        path = f"{os.environ.get('PATH', '')}:/usr/sbin"
        self._binary = shutil.which(self.program, path=path) or missing(
            f"{self.program} is not installed: run `make packages`"
        )

    def command(self) -> list[str]:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def start(self) -> None:
        with (self.directory / "server.log").open("ab") as log:
            command = [self._binary, *self.command()]
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.is_ready, self.program, self._process)

    def kill(self) -> None:
        """Let the server die without a chance to write anything."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the server as its operator does."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop every thread of the server; the signal alone lets some run on for a moment."""
        self._signal(signal.SIGSTOP)
        wait_until(self._is_frozen, f"a frozen {self.program}")

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _is_frozen(self) -> bool:
        assert self._process is not None
        states = Path(f"/proc/{self._process.pid}/task").glob("*/stat")
        return all(state.read_text().rpartition(")")[2].split()[0] == "T" for state in states)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._signal(signal.SIGCONT)
        self._signal(number)
        self._process.wait(timeout=20)
        self._process = None


class HttpStoreServer(StoreServer):
    #: A storm reads all that a store has at once, and waits for longer.
    answer_within_s: ClassVar[float] = 10.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, **query: str) -> bytes:
        text = urllib.parse.urlencode(query)
        url = f"{self.url}{path}?{text}"
        with urllib.request.urlopen(url, timeout=self.answer_within_s) as answer:
            return bytes(answer.read())


class Influxdb(HttpStoreServer):
    """InfluxDB 1. Every point is in its write-ahead log before it answers."""

    program = "influxd"

    def command(self) -> list[str]:
        config = self.directory / "influxdb.conf"
        config.write_text(
            "reporting-disabled = true\n"
            f'bind-address = "127.0.0.1:{free_port()}"\n'
            f'[meta]\ndir = "{self.directory}/meta"\n'
            f'[data]\ndir = "{self.directory}/data"\nwal-dir = "{self.directory}/wal"\n'
            "[monitor]\nstore-enabled = false\n"
            f'[http]\nbind-address = "127.0.0.1:{self.port}"\nlog-enabled = false\n'
        )
        return ["-config", str(config)]

    def is_ready(self) -> bool:
        return self.ask("/ping") == b""

    def run(self, statement: str) -> None:
        data = urllib.parse.urlencode({"q": statement}).encode()
        urllib.request.urlopen(f"{self.url}/query", data, timeout=10).close()

    def rows(self, database: str, statement: str) -> list[dict[str, Any]]:
        """Return the rows of a query, each with its tags."""
        answer = json.loads(self.ask("/query", db=database, q=statement, epoch="ms"))
        series = answer["results"][0].get("series", [])
        return [
            {**each.get("tags", {}), **dict(zip(each["columns"], row, strict=True))}
            for each in series
            for row in each["values"]
        ]


class VictoriaMetrics(HttpStoreServer):
    """VictoriaMetrics, which is told to store a repeated sample once."""

    program = "victoria-metrics"

    def command(self) -> list[str]:
        return [
            f"-httpListenAddr=127.0.0.1:{self.port}",
            f"-storageDataPath={self.directory}/data",
            "-retentionPeriod=100y",
            "-dedup.minScrapeInterval=1ms",
            "-search.latencyOffset=0s",
        ]

    def is_ready(self) -> bool:
        return self.ask("/health") == b"OK"

    def samples(self, match: str) -> Counter[tuple[str, int]]:
        """Return how often each series (its labels as JSON) has a sample of an instant."""
        found: Counter[tuple[str, int]] = Counter()
        for series in self._export(match):
            labels = json.dumps(series["metric"], sort_keys=True)
            found.update((labels, at_ms) for at_ms in series["timestamps"])
        return found

    def labels(self, match: str) -> list[dict[str, str]]:
        """Return the labels of all series."""
        return [series["metric"] for series in self._export(match)]

    def _export(self, match: str) -> list[Any]:
        self.ask("/internal/force_flush")
        lines = self.ask("/api/v1/export", **{"match[]": match}).splitlines()
        return [json.loads(line) for line in lines]


class NatsServer(StoreServer):
    """NATS with JetStream in files."""

    program = "nats-server"

    def command(self) -> list[str]:
        config = self.directory / "nats.conf"
        config.write_text(
            f'listen: "127.0.0.1:{self.port}"\nmax_payload: 65536\n'
            f'jetstream {{ store_dir: "{self.directory}/jetstream" }}\n{self.more}\n'
        )
        return ["-c", str(config)]

    more = ""  # lines of the configuration

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            return connection.recv(4) == b"INFO"


class Prometheus(HttpStoreServer):
    """Prometheus with its receiver of remote write; `window` takes samples out of order."""

    program = "prometheus"

    def __init__(self, directory: Path, window: str = "") -> None:
        super().__init__(directory)
        self._window = window
        self._config = self.directory / "prometheus.yml"

    @contextmanager
    def scraping(self, jobs: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Scrape these jobs, entries of `scrape_configs`, while the context lasts."""
        self._configure(jobs)
        self._signal(signal.SIGHUP)
        try:
            yield
        finally:
            self._configure(())
            self._signal(signal.SIGHUP)

    def _configure(self, jobs: Sequence[Mapping[str, Any]]) -> None:
        window = {"out_of_order_time_window": self._window} if self._window else {}
        content = {"global": {}, "storage": {"tsdb": window}, "scrape_configs": list(jobs)}
        self._config.write_text(json.dumps(content))  # JSON is YAML

    def command(self) -> list[str]:
        self._configure(())
        return [
            f"--config.file={self._config}",
            f"--storage.tsdb.path={self.directory}/data",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--web.enable-remote-write-receiver",
            "--log.level=warn",
        ]

    def is_ready(self) -> bool:
        return b"Ready" in self.ask("/-/ready")

    def query(self, expression: str, at_ms: int | None = None) -> list[dict[str, Any]]:
        """Return the result of an instant query, now or at an instant."""
        instant = {} if at_ms is None else {"time": f"{at_ms / 1000:.3f}"}
        answer = json.loads(self.ask("/api/v1/query", query=expression, **instant))
        return list(answer["data"]["result"])

    def range(
        self, expression: str, first_ms: int, last_ms: int, step_ms: int
    ) -> list[dict[str, Any]]:
        """Return the result of a query at every step between two instants."""
        answer = self.ask(
            "/api/v1/query_range",
            query=expression,
            start=f"{first_ms / 1000:.3f}",
            end=f"{last_ms / 1000:.3f}",
            step=f"{step_ms / 1000:.3f}",
        )
        return list(json.loads(answer)["data"]["result"])

    def samples(self, match: str, hours: int = 4) -> Counter[tuple[str, int]]:
        """Return how often each series (its labels as JSON) has a sample of an instant."""
        found: Counter[tuple[str, int]] = Counter()
        for series in self.query(f"{match}[{hours}h]"):
            labels = json.dumps(series["metric"], sort_keys=True)
            found.update((labels, round(at_s * 1000)) for at_s, _ in series["values"])
        return found


class MockKafka(StoreServer):
    """Brokers without a disk: a stopped one has lost everything."""

    program = sys.executable

    @property
    def broker(self) -> str:
        return (self.directory / "broker").read_text()

    def command(self) -> list[str]:
        (self.directory / "broker").unlink(missing_ok=True)
        return [str(Path(__file__).with_name("mock_kafka.py")), str(self.directory / "broker")]

    def is_ready(self) -> bool:
        return bool(self.broker)
