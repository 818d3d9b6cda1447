"""The real page on a real server in a real browser; what the board shows is a test's to choose."""

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
from playwright.sync_api import Browser, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "web"))

import web_collectors
import web_overviews as fleet
import web_rates
import web_standings

from poller.domain.record.overview import Overview
from poller.web import web_process
from poller.web.backend_queries import Sources

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
]


class Site:
    """A server on loopback. Every look at `shows` finds it a second older, as a living board would be."""

    def __init__(self, shows: Overview) -> None:
        self.shows = shows
        self.looks = 0
        self.polls = web_rates.polls(60, 2)  # of sw1
        self.standing = web_standings.WELL  # of sw1, too
        self.collectors = web_collectors.FOUND
        self._listener = web_process.listen("127.0.0.1", 0)
        self.port: int = self._listener.getsockname()[1]
        self.start(self._listener)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def look(self) -> Overview:
        self.looks += 1
        return dataclasses.replace(self.shows, as_of_ms=self.shows.as_of_ms + 1000 * self.looks)

    def start(self, listener: socket.socket | None = None) -> None:
        links = {"Flower": "http://127.0.0.1:5555"}
        sources = Sources(
            self.look,
            dict,
            links,
            lambda device, asked: web_rates.answering(self.polls)(device, asked),
            lambda: self.collectors,
            lambda *_: self.standing,
        )
        self._server = web_process.server(sources)
        sockets = [listener or web_process.listen("127.0.0.1", self.port)]
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": sockets})
        self._thread.start()

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(timeout=10)
        assert not self._thread.is_alive(), "an open page held the server up"


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site(fleet.HEALTHY)
    yield made
    made.stop()


@pytest.fixture(
    scope="module"
)  # playwright's loop occupies the thread: gone before other tests need one
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        reason = f"{CHROMIUM} is not installed"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield chromium
        chromium.close()


@dataclasses.dataclass
class Notes:
    """What a page said and asked for behind its reader's back."""

    complaints: list[str] = dataclasses.field(default_factory=list)
    hosts: set[str] = dataclasses.field(default_factory=set)
    paths: list[str] = dataclasses.field(default_factory=list)


Open = Callable[..., Page]


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def open_page(browser: Browser, site: Site, notes: Notes) -> Iterator[Open]:
    """Open the site; at the end no page may have complained, nor asked anybody else for anything."""
    contexts = []

    def opened(**wishes: object) -> Page:
        wishes.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(**wishes)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: notes.complaints.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: notes.complaints.append(str(error)))
        page.on("dialog", lambda dialog: notes.complaints.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: _note(notes, request.url))
        page.goto(site.url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert notes.complaints == []
    assert notes.hosts <= {"127.0.0.1"}


def _note(notes: Notes, url: str) -> None:
    parts = urlsplit(url)
    notes.hosts.add(parts.hostname or "")
    notes.paths.append(parts.path)
