"""How fast are the pages of a large fleet with one device in ten failing, and how large?"""

from __future__ import annotations

import gzip
import http.client
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmarks import agents, cluster, live_pages, progress, quantile, still_fleet
from benchmarks.agents import PollRequest
from benchmarks.section import Figure, Findings, Section
from benchmarks.stage import Process, Stage
from poller import errors
from poller.beat import reconcile
from poller.cli.up import listen_ports
from poller.sim.sim_process import simulated
from poller.web.pages.frame import navigation

FIRST_PAINT_MS = 1_000
LIST_MS = 150
_DEVICE_MS = 200
HTML_BYTES = 20_000
_ANSWER_S = 30
_READY_S = 60
_PAUSE_S = 0.02

_Page = tuple[str, str, Mapping[str, str], int]

#: Pages with a goal of their own: name -> label, path, query, and the goal of 95 % in ms.
PAGES: Mapping[str, _Page] = {
    "overview": ("overview", "/", {}, 100),
    "wall": ("wall", "/wall", {}, FIRST_PAINT_MS),
    "sites": ("sites", "/sites", {}, FIRST_PAINT_MS),
    "devices": ("devices, first page", "/devices", {}, LIST_MS),
    "failing": ("devices, state:failing", "/devices", {"where": "state:failing"}, LIST_MS),
    "site": ("devices, site:site7", "/devices", {"where": "site:site7"}, LIST_MS),
    "code": ("devices, code and site", "/devices", {"where": "code:timeout site:site7"}, LIST_MS),
    "word": ("devices, a typed word", "/devices", {"where": "sw-0001"}, LIST_MS),
    "tag": ("devices, tag:core", "/devices", {"where": "tag:core"}, LIST_MS),
    "worst": ("devices, worst first", "/devices", {"sort": "worst"}, LIST_MS),
    "worst_site": (
        *("devices, worst first of a site", "/devices"),
        *({"sort": "worst", "where": "site:site7"}, LIST_MS),
    ),
    "oldest": ("devices, oldest data first", "/devices", {"sort": "last_ok"}, LIST_MS),
    "by_site": ("devices, by site", "/devices", {"sort": "site"}, LIST_MS),
    "by_site_failing": (
        *("devices, failing ones by site", "/devices"),
        *({"sort": "site", "where": "state:failing"}, LIST_MS),
    ),
    "large": ("devices, 250 rows", "/devices", {"limit": "250"}, FIRST_PAINT_MS),
    "facets": ("facets of failing devices", "/devices/-/facets", {"where": "state:failing"}, 1_000),
    "complete": ("completion of a site", "/devices/-/completions", {"word": "site:site"}, LIST_MS),
}


@dataclass(frozen=True, slots=True)
class Size:
    targets: int
    requests: int  # of each page
    running: int  # devices that are polled while pages are live
    interval_s: float
    live: int  # pages that stay open
    live_s: float


def run(size: Size, stage: Stage) -> Findings:
    services = stage.services
    fleet = agents.devices(size.running)
    with simulated(fleet) as simulator:
        agents.store(services, fleet, simulator.snmp, PollRequest(size.interval_s, ("system",)))
        still_fleet.store(services, size.targets)
        reconcile.reconcile(services.board, services.engine, "", services.board.now_ms())
        failing = still_fleet.give_statuses(services)
        port = listen_ports.free_port()
        web = stage.start("web", ["-m", "poller", "web"], POLLER_WEB_PORT=str(port))
        client = _Client(port, web)
        pages = {**PAGES, **_others(fleet[0].name)}
        figures = [figure for name in pages for figure in _measure(client, name, pages[name], size)]
        ours = cluster.start(stage)
        ours.steady(size.running, size.interval_s)
        figures += live_pages.measure(port, web, size.live, size.live_s)
        ours.stop()
    note = (
        f"{size.targets:,} devices with a target each, {failing:,} of them failing; one client, "
        "one request at a time, over HTTP, without compression but for the bytes. Live pages are "
        f"open while {size.running:,} devices are polled every {size.interval_s:g} s"
    )
    return Findings(figures, notes=[note])


def _others(device: str) -> dict[str, _Page]:
    """Return the pages of a device, and those of the navigation that have no goal of their own."""
    known = {path for _, path, _, _ in PAGES.values()}
    found: dict[str, _Page] = {
        "device": ("a device", f"/devices/{device}", {}, _DEVICE_MS),
    }
    for entry in navigation.ENTRIES:
        if f"/{entry.path}" not in known:
            found[entry.path] = (entry.title.lower(), f"/{entry.path}", {}, FIRST_PAINT_MS)
    return found


class _Client:
    """One connection to the web role."""

    def __init__(self, port: int, web: Process) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)
        self._web = web
        cluster.until("starting the web role", 1, self._is_ready, _READY_S)

    def get(self, path: str, query: Mapping[str, str]) -> bytes:
        """Return the page. Raises StoreUnavailable for any answer but 200."""
        headers = {"Accept": "text/html"}
        self._connection.request("GET", f"{path}?{urlencode(query)}", headers=headers)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise errors.StoreUnavailable(f"GET {path}: HTTP {response.status}")
        return body

    def _is_ready(self) -> bool:
        self._web.must_live()
        try:
            return bool(self.get("/healthz", {}))
        except OSError:
            self._connection.close()
            return False


def _measure(client: _Client, name: str, page: _Page, size: Size) -> Iterator[Figure]:
    label, path, query, goal_ms = page
    requests = size.requests
    counts: dict[int, int] = {}
    body = b""
    with progress.shown(f"GET {path} {query.get('where', '')}", requests) as show:
        for done in range(requests + 1):
            began = time.perf_counter()
            body = client.get(path, query)
            took_ms = round((time.perf_counter() - began) * 1000)
            if done:  # the first one fills the caches
                counts[took_ms] = counts.get(took_ms, 0) + 1
            show(done)
            time.sleep(_PAUSE_S)
    p50, p95 = quantile.of(counts, 0.5), quantile.of(counts, 0.95)
    yield Figure(f"{name}_p50_ms", f"{label}, median", p50, "ms")
    yield Figure(f"{name}_p95_ms", f"{label}, 95 %", p95, "ms", below=goal_ms)
    if name != "large":  # 250 rows are asked for
        packed = len(gzip.compress(body, 4))
        yield Figure(f"{name}_bytes", f"{label}, compressed", packed, "B", at_most=HTML_BYTES)


SECTION = Section(
    asks="how fast are the pages of a large fleet, and how large?",
    sizes={
        "full": Size(100_000, 200, 1_000, 5.0, 200, 60),
        "small": Size(20_000, 40, 200, 5.0, 200, 20),
        "tiny": Size(500, 3, 10, 1.0, 5, 2),
    },
    run=run,
)
