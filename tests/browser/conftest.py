"""The real pages on a real server in a real browser, over an overview that a test chooses."""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "web"))

import web_collectors
import web_jobs
import web_overviews as fleet
import web_rates

from poller.domain.record.overview import Overview
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web import web_process
from poller.web.backend_queries import BackendQueries

CHROMIUM = "/usr/bin/chromium"
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP pages.poller.test 127.0.0.1",  # a name without TLS, as on a LAN
]


class Site:
    """A server on loopback. Each read of `overview` is one second later, as on a live board."""

    def __init__(self, overview: Overview) -> None:
        self.overview = overview
        self.reads = 0
        self.fleet = FleetPicture()
        self.polls = web_rates.polls(60, 2)  # of sw1
        self.collectors = web_collectors.STATUS
        self.jobs = web_jobs.LISTED
        self._listener = web_process.listen("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self.start(self._listener)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def read_overview(self) -> Overview:
        self.reads += 1
        as_of_ms = self.overview.as_of_ms + 1000 * self.reads
        return dataclasses.replace(self.overview, as_of_ms=as_of_ms)

    def start(self, listener: socket.socket | None = None) -> None:
        backend = BackendQueries(
            overview=self.read_overview,
            fleet=lambda: self.fleet,
            links={"Flower": "http://127.0.0.1:5555"},
            rates=lambda device, request: web_rates.query(self.polls)(device, request),
            collectors=lambda: self.collectors,
            jobs=lambda: self.jobs,
            job=web_jobs.shown,
        )
        self._server = web_process.server(backend)
        sockets = [listener or web_process.listen("127.0.0.1", self.port)]
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": sockets})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "an open page delayed the stop of the server"


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site(fleet.HEALTHY)
    yield made
    made.stop()


# Playwright's event loop occupies the thread, so it must end before the tests of another module.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        reason = f"{CHROMIUM} is not installed"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@dataclasses.dataclass
class PageLog:
    """The console errors and the requests of a page."""

    errors: list[str] = dataclasses.field(default_factory=list)
    hosts: set[str] = dataclasses.field(default_factory=set)
    paths: list[str] = dataclasses.field(default_factory=list)

    def add_message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def add_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.hosts.add(parts.hostname or "")
        self.paths.append(parts.path)


Open = Callable[..., Page]


@pytest.fixture
def page_log() -> PageLog:
    return PageLog()


@pytest.fixture
def open_page(browser: Browser, site: Site, page_log: PageLog) -> Iterator[Open]:
    """A function that opens the site. At the end no page may have an error or a foreign request."""
    contexts = []

    def open_site(**options: object) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", page_log.add_message)
        page.on("pageerror", lambda error: page_log.errors.append(str(error)))
        page.on("dialog", lambda dialog: page_log.errors.append(f"dialog: {dialog.message}"))
        page.on("request", page_log.add_request)
        page.goto(site.url)
        return page

    yield open_site
    for context in contexts:
        context.close()
    assert page_log.errors == []
    assert page_log.hosts <= {"127.0.0.1"}
