"""The budgets of the pages: bytes, requests, elements of a row, and no part that is forgotten."""

from __future__ import annotations

import gzip
import re
from importlib import resources

import pytest
import web_overviews as fleet

from poller.domain.fleet.day_slots import Slot
from poller.web import assets
from poller.web.pages.fleet import day_strip

FIRST_LOAD = 60_000
SCRIPTS = 25_000
STYLE = 12_000
PAGE = 20_000
REQUESTS = 6  # with the stream and its worker


def compressed(name: str) -> int:
    return len(gzip.compress(assets.load().by_name[name].body, 4))


@pytest.mark.parametrize(
    "path", ["/", "/sites", "/wall", "/workers", "/jobs", "/collectors", "/nowhere"]
)
def test_a_first_load_is_small_and_has_few_requests(create_client, path: str) -> None:
    """Page, style sheet, scripts and icon together, compressed as they are sent."""
    client = create_client(fleet.FAILING)
    page = client.get(path, headers={"Accept": "text/html"}).text
    files = set(re.findall(r'(?:href|src|data-worker)="(?:\.\./|\./)?static/([^"]*)"', page))
    sizes = [len(gzip.compress(assets.load().by_path[file].body, 4)) for file in files]
    assert len(gzip.compress(page.encode(), 4)) <= PAGE
    assert sum(sizes) + len(gzip.compress(page.encode(), 4)) <= FIRST_LOAD
    assert 1 + len(files) + 1 <= REQUESTS


def test_scripts_and_style_keep_their_shares() -> None:
    """All scripts together, and the one style sheet."""
    assert compressed("style.css") <= STYLE
    assert compressed("frame.js") + compressed("stream-worker.js") <= SCRIPTS


def test_every_part_is_in_a_bundle() -> None:
    """A part that no bundle names would never reach a browser."""
    directory = resources.files("poller.web").joinpath("static")
    parts = {
        f"{room.name}/{file.name}"
        for room in directory.iterdir()
        if room.is_dir()
        for file in room.iterdir()
    }
    assert parts == {part for bundle in assets.BUNDLES.values() for part in bundle}


def test_the_names_of_parts_that_share_a_scope_are_unique() -> None:
    """Parts of a bundle are one module: a second declaration of a name would stop them all."""
    for name, parts in assets.BUNDLES.items():
        if not name.endswith(".js"):
            continue
        text = assets.load().by_name[name].body.decode()
        names = re.findall(r"^(?:async )?(?:function|const|let|class) (\w+)", text, re.MULTILINE)
        assert len(parts) > 1
        assert sorted(names) == sorted(set(names)), name


def test_the_strip_of_a_quiet_day_is_two_elements() -> None:
    """A row of the list has few elements: equal slots are one shape, at worst 48."""
    assert day_strip.svg([Slot.OK] * 48).count("<") == 3
    worst = day_strip.svg([Slot.OK, Slot.FAILED] * 24)
    assert worst.count("<rect") == 48
    assert "24 with failed polls, 24 good." in worst
