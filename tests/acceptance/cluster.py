"""A cluster of real processes on this machine: one Valkey, an inventory, beats and workers.

Each process has the command and the environment that an operator would use, and each beat has a
network that can be cut.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from poller import errors
from poller.bootstrap import Services
from poller.db import migrate
from poller.db.inventory import imports, inventory_feed
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Leader
from poller.service.operations import board_actions
from poller.settings import Settings
from poller.state.cluster import overview_reader
from tests.acceptance import recorder, records
from tests.acceptance.programs import POLLER, descendants, environment, is_running
from tests.acceptance.proxy import Proxy
from tests.acceptance.valkey import Valkey

ROOT = Path(__file__).parents[2]
CELERY = [sys.executable, "-m", "celery", "-A", "poller"]
COLLECTOR = "recorder"
T = TypeVar("T")


def soon(condition: Callable[[], T | None], within_s: float, what: str) -> T:
    """Return the first true value of `condition`.

    Raises an AssertionError with `what` after the time limit.
    """
    until = time.monotonic() + within_s
    while True:
        try:
            value = condition()
        except errors.StoreError:
            value = None
        if value:
            return value
        assert time.monotonic() < until, f"not within {within_s:g} s: {what}"
        time.sleep(0.01)


class Program:
    """One process of the cluster, and its log."""

    def __init__(
        self,
        words: Sequence[str],
        env: dict[str, str],
        directory: Path,
        name: str,
        memory_bytes: int = resource.RLIM_INFINITY,
    ) -> None:
        self.name = name
        self._log = directory / f"{name}.log"
        with self._log.open("ab") as log:
            command = words if words[: len(POLLER)] == POLLER else [*CELERY, *words]
            self._process = subprocess.Popen(
                command, env=env, cwd=directory, stdout=log, stderr=log
            )
        # The process has no children yet; later children inherit the limit.
        if memory_bytes != resource.RLIM_INFINITY:
            resource.prlimit(self.pid, resource.RLIMIT_AS, (memory_bytes, memory_bytes))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process.poll() is None

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def kill(self) -> None:
        """Kill the process and its children: a worker's embedded beat would stay behind."""
        left = descendants(self.pid)
        self._process.kill()
        self._process.wait()
        for pid in filter(is_running, left):
            os.kill(pid, signal.SIGKILL)

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        self.signal(signal.SIGTERM)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, within_s: float) -> int:
        return self._process.wait(timeout=within_s)


class Beat(Program):
    """A `celery -A poller beat` with its own network to Valkey."""

    network: Proxy


class Cluster:
    """The processes and stores of a test. As a context manager it ends all of them."""

    def __init__(self, directory: Path, database_url: str = "", **settings: str) -> None:
        self.directory = directory
        self.valkey = Valkey(directory / "valkey")
        self.beats: list[Beat] = []
        self.workers: list[Program] = []
        self._started = 0
        self._others: list[Program] = []
        self._networks: list[Proxy] = []
        self._database_url = database_url
        self._settings = settings
        self.record = records.Record(directory / "polls")
        recorder.install(directory / "plugins")
        self.services = Services(
            Settings(
                home=directory / "home",
                redis_url=SecretStr(self.valkey.url),
                database_url=SecretStr(database_url),
            )
        )
        migrate.upgrade(self.services.engine)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for program in [*self.beats, *self.workers, *self._others]:
            program.kill()
        for network in self._networks:
            network.close()
        self.valkey.kill()
        self.services.engine.dispose()

    # Actions of an operator

    def environment(self, port: int, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a shell that uses this cluster, with Redis on `port`."""
        url = f"redis://127.0.0.1:{port}/0"
        names = {
            "POLLER_REDIS_URL": url,
            "POLLER_DATABASE_URL": self._database_url,
            **self._settings,
            **more,
        }
        path = os.pathsep.join([str(ROOT), str(self.directory / "plugins")])
        files = {recorder.FILE_VARIABLE: str(self.directory / "polls"), "PYTHONPATH": path}
        return environment(self.directory / "home", **names, **files)

    def add_targets(
        self,
        count: int,
        interval_s: float,
        seconds: float = 0.0,
        prefix: str = "d",
        timeout_s: float = 0.9,
    ) -> None:
        """Add devices `d0` and so on with one target each, whose polls take `seconds`.

        The scheduler gets no wake-up.
        """
        draft = target(interval_s, seconds, timeout_s)
        rows = [
            imports.Row(DeviceDraft(f"{prefix}{i}", "127.0.0.1"), [draft]) for i in range(count)
        ]
        imports.apply_import(self.services.engine, rows)

    def start_beat(self, **env: str) -> Beat:
        network = self.make_network()
        name = self._next_name("beat")
        words = ["beat", "--hostname", name]
        beat = Beat(words, self.environment(network.port, env), self.directory, name)
        beat.network = network
        self.beats.append(beat)
        return beat

    def make_network(self) -> Proxy:
        """Return a network to Valkey that can be cut and slowed down."""
        network = Proxy(self.valkey.port)
        self._networks.append(network)
        return network

    def start_worker(self, *words: str, network: Proxy | None = None, **env: str) -> Program:
        name = self._next_name("worker")
        env = self.environment(network.port if network else self.valkey.port, env)
        worker = Program(["worker", "--hostname", name, *words], env, self.directory, name)
        self.workers.append(worker)
        return worker

    def start_supervisor(self, *words: str, **env: str) -> Program:
        """Start `poller worker`: workers, and a supervisor that restarts them."""
        env = self.environment(self.valkey.port, env)
        running = Program(
            [*POLLER, "worker", *words], env, self.directory, self._next_name("supervisor")
        )
        self._others.append(running)
        return running

    def start_web(self, port: int) -> Program:
        """Start `poller web` at a port of loopback."""
        env = self.environment(self.valkey.port, {"POLLER_WEB_PORT": str(port)})
        running = Program([*POLLER, "web"], env, self.directory, self._next_name("web"))
        self._others.append(running)
        return running

    def start_up(
        self, workers: int = 1, memory_bytes: int = resource.RLIM_INFINITY, **env: str
    ) -> Program:
        """Start `poller up` on this server: a beat, workers, and a supervisor that restarts
        them.
        """
        words = [*POLLER, "up", "--workers", str(workers)]
        env = self.environment(self.valkey.port, env)
        running = Program(words, env, self.directory, self._next_name("up"), memory_bytes)
        self._others.append(running)
        return running

    def run(self, *words: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a `poller` command, as in another terminal."""
        return self._run([*POLLER, *words], timeout)

    def ping(self, timeout: float = 60) -> set[str]:
        """Return the processes that respond to `celery inspect ping`."""
        done = self._run([*CELERY, "inspect", "ping", "--json"], timeout)
        return set(json.loads(done.stdout)) if done.returncode == 0 else set()

    def prefetch(self, timeout: float = 60) -> int:
        """Return the prefetch count of the only worker, from `celery inspect stats`."""
        done = self._run([*CELERY, "inspect", "stats", "--json"], timeout)
        if done.returncode != 0:
            return 0
        [stats] = json.loads(done.stdout).values()
        return int(stats["prefetch_count"])

    def _run(self, words: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
        env = self.environment(self.valkey.port, {})
        return subprocess.run(
            words, env=env, cwd=self.directory, capture_output=True, text=True, timeout=timeout
        )

    def _next_name(self, role: str) -> str:
        self._started += 1
        return f"{role}{self._started}@test"

    # Observations

    def leader(self) -> Beat | None:
        """Return the beat that leads by the cluster's own record, None without a leader."""
        leader = self.leading()
        if leader is None:
            return None
        return next((beat for beat in self.beats if leader.name.endswith(f":{beat.pid}")), None)

    def leading(self) -> Leader | None:
        return overview_reader.read(self.services.redis, self.services.keys).leader

    def standbys(self) -> int:
        return overview_reader.read(self.services.redis, self.services.keys).standbys

    def targets(self) -> set[int]:
        """Return every enabled target of the inventory."""
        with inventory_feed.all_specs(self.services.engine) as fleet:
            return {spec.id for spec in fleet.specs if spec.enabled}

    def first_poll(self, instant: float = 0.0) -> records.Poll | None:
        """Return the first poll that started after an instant."""
        return next(iter(self.record.polls(instant)), None)

    def pids(self) -> set[int]:
        """Return the process ids of every running beat and worker."""
        return {program.pid for program in [*self.beats, *self.workers] if program.runs}

    # Checks

    def unpolled(self, since: float) -> set[int]:
        """Return the targets that were not polled after an instant."""
        return self.targets() - {poll.target for poll in self.record.polls(since)}

    def all_polled(self, since: float, within_s: float) -> None:
        """Check that every target is polled after an instant."""
        try:
            soon(lambda: not self.unpolled(since), within_s, "every target is polled")
        except AssertionError:
            left = sorted(self.unpolled(since))
            places = {i: self._places(i) for i in left[:3]}
            raise AssertionError(f"{len(left)} targets not polled: {places}") from None

    def doubled(
        self, since: float, excused: Callable[[records.Poll], bool] = lambda _: False
    ) -> list[records.Poll]:
        """Return polls after an instant that overlap an earlier poll of their target, or are the
        second for one plan.
        """
        polls = self.record.polls(since)
        overlapping = [later for _, later in records.overlapping(polls)]

        def unaccounted() -> list[records.Poll]:
            return [
                poll
                for poll in records.unaccounted(polls, self.services.engine)
                if not excused(poll)
            ]

        with suppress(AssertionError):  # a row is written a moment after its poll
            soon(lambda: not unaccounted(), 5, "every poll has a row of its own in the ledger")
        return [*overlapping, *unaccounted()]

    def never_doubled(
        self, since: float, excused: Callable[[records.Poll], bool] = lambda _: False
    ) -> None:
        """Check that no target was polled twice for one plan, and that no two polls of a target
        overlapped.
        """
        found = self.doubled(since, excused)
        assert found[:5] == [], f"{len(found)} polls too many"

    def sound(self) -> None:
        """Check that every enabled target is in exactly one place, and that the board holds nothing
        else.
        """
        report = board_actions.verify(self.services)
        assert report.sound, report

    def checked(self) -> None:
        """Check with `poller board check` that the board is sound."""
        done = self.run("board", "check", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        sums = json.loads(done.stdout)
        assert [sums[name] for name in ("lost", "doubled", "strays", "unreadable")] == [0, 0, 0, 0]

    def _places(self, target_id: int) -> dict[str, Any]:
        """Return the places of a target on the board, for the message of a failed test."""
        client, keys = self.valkey.client, self.services.keys
        return {
            "due": client.zscore(keys.due(f"poll.{COLLECTOR}"), target_id),
            "in flight": client.zscore(keys.inflight, target_id),
            "run": client.hget(keys.run, target_id),
            "now": time.time(),
        }


def target(interval_s: float, seconds: float = 0.0, timeout_s: float = 0.9) -> TargetDraft:
    """Return a draft of a target of the recorder."""
    options = {"seconds": seconds}
    interval_ms, timeout_ms = round(interval_s * 1000), round(timeout_s * 1000)
    return TargetDraft(
        COLLECTOR, COLLECTOR, options, interval_ms=interval_ms, timeout_ms=timeout_ms
    )
