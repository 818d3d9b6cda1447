"""How fast are the health, lists and explanations of a large fleet, read beside a running one?"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks import agents, cluster, progress, quantile, still_fleet
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Process, Stage
from poller import errors
from poller.beat import reconcile
from poller.cli.up import listen_ports
from poller.sim.sim_process import simulated

API = "/api/v1"
GOAL_MS = 200
_ANSWER_S = 30
_READY_S = 60
_PAUSE_S = 0.02

#: The requests that have a goal: name -> label, path and query.
REQUESTS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "health": ("health, first page", "/scheduler/health", {}),
    "health_failing": ("health, state:failing", "/scheduler/health", {"where": "state:failing"}),
    "health_site": ("health, site:site7", "/scheduler/health", {"where": "site:site7"}),
    "health_tag": ("health, tag:core", "/scheduler/health", {"where": "tag:core"}),
    "health_code": ("health, code:auth_failed", "/scheduler/health", {"where": "code:auth_failed"}),
    "health_name": ("health, name:sw-*", "/scheduler/health", {"where": "name:sw-*"}),
    "devices": ("device list, state:failing", "/devices", {"where": "state:failing"}),
    "why": ("why", "/targets/{target_id}/why", {}),
}


@dataclass(frozen=True, slots=True)
class Size:
    targets: int  # of the still fleet
    running: int  # devices that are polled meanwhile
    interval_s: float
    requests: int  # of each kind


def run(size: Size, stage: Stage) -> Findings:
    services = stage.services
    fleet = agents.devices(size.running)
    with simulated(fleet) as simulator:
        agents.store(services, fleet, simulator.snmp, PollRequest(size.interval_s, ("system",)))
        still_fleet.store(services, size.targets)
        reconcile.reconcile(services.board, services.engine, "", services.board.now_ms())
        failing = still_fleet.give_statuses(services)
        ours = cluster.start(stage)
        port = listen_ports.free_port()
        web = stage.start("web", ["-m", "poller", "web"], POLLER_WEB_PORT=str(port))
        ours.steady(size.running, size.interval_s)
        figures = list(_measure(_Client(port, web), size))
        ours.stop()
    note = (
        f"{size.targets:,} targets on the board, {failing:,} of them failing, beside "
        f"{size.running:,} devices polled every {size.interval_s:g} s; one client, one request at "
        "a time, over HTTP"
    )
    return Findings(figures, notes=[note])


class _Client:
    """One connection to the web role."""

    def __init__(self, port: int, web: Process) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        self._web = web
        self._wait_until_ready()

    def get(self, path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        address = f"{API}{path}?{urlencode(query)}"
        self._connection.request("GET", address)
        response = self._connection.getresponse()
        return response.status, response.read()

    def _wait_until_ready(self) -> None:
        def is_ready() -> bool:
            self._web.must_live()
            try:
                return self.get("/scheduler/health", {"limit": "1"})[0] == 200
            except OSError:
                self._connection.close()
                return False

        cluster.until("starting the web role", 1, is_ready, _READY_S)


def _measure(client: _Client, size: Size) -> Iterator[Figure]:
    target_id = _failing_target(client)
    for name, (label, path, query) in REQUESTS.items():
        took = _times(client, path.format(target_id=target_id), query, size.requests)
        p50 = quantile.of(took, 0.5) if took else None
        p95 = quantile.of(took, 0.95) if took else None
        yield Figure(f"{name}_p50_ms", f"{label}, median", p50, "ms")
        yield Figure(f"{name}_p95_ms", f"{label}, 95 %", p95, "ms", below=GOAL_MS)


def _failing_target(client: _Client) -> int:
    _, body = client.get("/scheduler/health", {"where": "state:failing", "limit": "1"})
    [instance] = json.loads(body)["instances"]
    return int(instance["target_id"])


def _times(client: _Client, path: str, query: Mapping[str, str], number: int) -> dict[int, int]:
    """Return how many requests took how many ms; none for a route that does not exist."""
    counts: dict[int, int] = {}
    with progress.shown(f"GET {path} {query.get('where', '')}", number) as show:
        for done in range(number + 1):
            began = time.perf_counter()
            status, _ = client.get(path, query)
            took_ms = round((time.perf_counter() - began) * 1000)
            if status == 404:
                return {}
            if status != 200:
                raise errors.StoreUnavailable(f"GET {path}: HTTP {status}")
            if done:  # the first one warms up
                counts[took_ms] = counts.get(took_ms, 0) + 1
            show(done)
            time.sleep(_PAUSE_S)
    return counts


SECTION = Section(
    asks="how fast are the health, lists and explanations of a large fleet, beside a running one?",
    sizes={
        "full": Size(100_000, 1_000, 5.0, 200),
        "small": Size(20_000, 200, 5.0, 40),
        "tiny": Size(500, 10, 1.0, 3),
    },
    run=run,
)
