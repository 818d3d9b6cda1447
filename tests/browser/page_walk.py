"""Finds every page of a running site: those of the navigation, and one of each kind behind them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

from playwright.sync_api import Page

#: Pages that no list leads to.
ALONE = ("/wall", "/login")
#: Of pages that differ by a name or number only, one is enough.
KINDS = (
    (re.compile(r"^/devices/(?!-)[^/]+"), "/devices/NAME"),
    (re.compile(r"^/alerts/\d+"), "/alerts/ID"),
    (re.compile(r"^/jobs/[^/]+"), "/jobs/NAME"),
    (re.compile(r"^/notifications/\d+"), "/notifications/ID"),
    (re.compile(r"^/users/[^/]+"), "/users/NAME"),
    (re.compile(r"^/collectors/[^/]+"), "/collectors/NAME"),
)
#: Paths that answer with something else than a page.
NO_PAGES = ("/api/", "/static/", "/metrics", "/logout", "/events/stream", "/login/provider")


def kind(address: str) -> str:
    """The kind of a page: its path without the name of the one thing that it shows."""
    path = urlsplit(address).path
    for pattern, name in KINDS:
        path = pattern.sub(name, path)
    return path


def links(page: Page) -> Iterator[str]:
    """The addresses on this site that visible links lead to, each with its question."""
    found = page.eval_on_selector_all(
        "a[href]", "all => all.filter(each => each.checkVisibility()).map(each => each.href)"
    )
    here = urlsplit(page.url)
    for address in found:
        parts = urlsplit(address)
        is_page = not parts.path.startswith(NO_PAGES) and "." not in parts.path.rpartition("/")[2]
        if parts.netloc == here.netloc and is_page:
            yield f"{parts.path}?{parts.query}" if parts.query else parts.path


def first_device(page: Page, site: str, where: str) -> str:
    """The address of the first device that matches a filter."""
    page.goto(f"{site}/devices?where={quote(where)}")
    row = page.locator('[data-table="devices"] tbody th a').first
    return f"/{row.get_attribute('href') or ''}"


def every_page(page: Page, site: str) -> dict[str, str]:
    """The address of one page of each kind, by kind; what a page links to is looked at, too.

    The device whose pages are looked at is well, so that it has interfaces and plots.
    """
    found: dict[str, str] = {}
    waiting = [first_device(page, site, "state:ok name:sw-*"), "/", *ALONE]
    while waiting:
        address = waiting.pop(0)
        if kind(address) in found:
            continue
        page.goto(site + address)
        if urlsplit(page.url).path == urlsplit(address).path:
            found[kind(address)] = address
            waiting += dict.fromkeys(links(page))
    return found
