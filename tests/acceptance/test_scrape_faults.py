"""Ten scrapers of one stranger while the worker is killed, Redis restarts and the database is away.

Each scraper gets an answer or a clear error in time, and the agent is asked as for one poll.
"""

from __future__ import annotations

import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.cluster import Cluster, soon
from tests.acceptance.valkey import free_port
from tests.integration.test_collector_snmp_hostile import honest
from tests.unit.collectors.snmp_agent import parse

SCRAPERS = 10
TIMEOUT_S = 6
#: Requests to a silent agent in this time, with retries; two polls send more.
MOST_PACKETS = 4


class Agent:
    """An SNMP agent that answers while it is awake, and keeps what it was asked."""

    def __init__(self) -> None:
        self.is_awake = threading.Event()
        self.asked: list[bytes] = []
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(65536)
            self.asked.append(data)
            if self.is_awake.is_set():
                for reply in honest(parse(data)):
                    self._socket.sendto(reply, peer)


class Answer(NamedTuple):
    status: int
    text: str
    took_s: float


class World:
    """A web process, a worker and an agent."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.agent = Agent()
        self.packets = 0  # of the scrapes during the last fault
        self.port = free_port()
        cluster.start_web(self.port)
        self.worker = cluster.start_worker()

    def scrape(self, timeout_s: float = TIMEOUT_S) -> Answer:
        url = f"http://127.0.0.1:{self.port}/snmp?target=127.0.0.1:{self.agent.port}&module=if_mib"
        headers = {"X-Prometheus-Scrape-Timeout-Seconds": str(timeout_s)}
        began = time.monotonic()
        try:
            with urllib.request.urlopen(
                urllib.request.Request(url, headers=headers), timeout=timeout_s
            ) as found:
                status, text = found.status, found.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        except OSError as error:
            status, text = 0, str(error)
        return Answer(status, text, time.monotonic() - began)

    def scrapes_during(self, fault: Callable[[], object]) -> list[Answer]:
        """Ten scrapes of a silent agent; the fault comes while their poll runs."""
        self.agent.is_awake.clear()
        time.sleep(0.2)  # an earlier result is kept for a shorter time
        self.agent.asked.clear()
        try:
            with ThreadPoolExecutor(SCRAPERS) as threads:
                waiting = [threads.submit(self.scrape) for _ in range(SCRAPERS)]
                soon(lambda: self.agent.asked, TIMEOUT_S, "the poll")
                fault()
                answers = [each.result() for each in waiting]
            self.packets = len(self.agent.asked)
        finally:
            self.agent.is_awake.set()
        return answers

    def works(self) -> None:
        until = time.monotonic() + 120
        while (answer := self.scrape()).status != 200:
            assert time.monotonic() < until, answer
            time.sleep(0.1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    settings = {"POLLER_SCRAPE_NETWORKS": "127.0.0.0/8", "POLLER_SCRAPE_KEEP_S": "0.1"}
    with Cluster(tmp_path_factory.mktemp("scrapes"), **settings) as cluster:
        cluster.valkey.start()
        made = World(cluster)
        made.agent.is_awake.set()
        made.works()
        yield made


def check(world: World, answers: list[Answer], *statuses: int) -> None:
    """Every scraper got one of these statuses in time, with a text."""
    assert {answer.status for answer in answers} <= set(statuses), answers
    assert max(answer.took_s for answer in answers) < TIMEOUT_S
    assert all(answer.text for answer in answers)
    assert world.packets <= MOST_PACKETS


def test_the_worker_is_killed(world: World) -> None:
    """The scrapers are told that no worker answered; the next worker polls again."""

    def kill() -> None:
        world.worker.kill()
        world.worker = world.cluster.start_worker()

    answers = world.scrapes_during(kill)
    check(world, answers, 503)
    assert {answer.text.partition(" within")[0] for answer in answers} == {"no worker answered"}
    world.works()
    check(world, [world.scrape()], 200)


@pytest.mark.parametrize("is_empty", [False, True], ids=["with its data", "empty"])
def test_redis_restarts(world: World, is_empty: bool) -> None:
    """A poll that runs goes on; the agent is not asked a second time meanwhile."""

    def restart() -> None:
        world.cluster.valkey.kill()
        world.cluster.valkey.start(empty=is_empty)

    check(world, world.scrapes_during(restart), 500, 503)
    world.works()
    check(world, [world.scrape()], 200)


def test_the_database_is_away(world: World) -> None:
    """A scrape needs it to know whether the target is a device. Later scrapes work again."""
    home: Path = world.cluster.directory / "home"
    [database] = home.glob("*.db")
    away = database.with_suffix(".away")
    database.rename(away)
    try:
        with ThreadPoolExecutor(SCRAPERS) as threads:
            answers = list(threads.map(lambda _: world.scrape(), range(SCRAPERS)))
    finally:
        away.rename(database)
    check(world, answers, 200, 503)
    world.works()
