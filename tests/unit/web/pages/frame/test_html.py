"""The overview as HTML: complete without scripts, and safe with any text."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser

import pytest
import web_overviews as fleet

from poller import errors
from poller.cli import main as cli
from poller.domain.record.overview import Overview
from poller.web.pages.fleet import overview_page

VOID = {"meta", "link", "img", "br", "input"}


class Document(HTMLParser):
    """The elements of a page with attributes and text, in order. Unmatched tags fail."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self._open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        for _, _, text in self._open:
            text.append(data)

    def text(self, attribute: str, value: str) -> str:
        found = ["".join(text) for _, attrs, text in self.elements if attrs.get(attribute) == value]
        assert found, f"no element with {attribute}={value}"
        return found[0].strip()

    def tags(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs, _ in self.elements if tag == name]


def unreadable() -> Overview:
    raise errors.StoreUnavailable("cannot use Redis at 127.0.0.1:1/0", "ConnectionError")


OVERVIEWS = {
    "healthy": fleet.HEALTHY,
    "failing": fleet.FAILING,
    "late": fleet.LATE,
    "empty": fleet.EMPTY,
    "no leader": fleet.NO_LEADER,
    "no workers": fleet.NO_WORKERS,
    "hostile": fleet.HOSTILE,
}


@pytest.mark.parametrize("overview", OVERVIEWS.values(), ids=OVERVIEWS.keys())
def test_every_page_is_well_formed_and_nothing_in_it_is_inline(
    create_client, overview: Overview
) -> None:
    """No style attribute, event handler or foreign script: the security headers forbid them."""
    page = Document(create_client(overview).get("/").text)
    for tag, attributes, _ in page.elements:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "style"
    assert all((script["src"] or "").startswith("static/frame-") for script in page.tags("script"))
    assert len(page.tags("script")) == 1


@pytest.mark.parametrize("overview", OVERVIEWS.values(), ids=OVERVIEWS.keys())
def test_the_heading_is_the_health_sentence_and_the_title_has_the_count(
    create_client, overview: Overview
) -> None:
    """The heading and the tab title are those of the verdict."""
    page = Document(create_client(overview).get("/").text)
    view = overview_page.build_view(overview)
    assert page.text("data-cell", "health") == view.health.text
    assert page.text("data-cell", "title") == view.health.title


def test_every_cell_of_the_stream_is_on_the_page_with_the_same_text(create_client) -> None:
    """A patch finds its cell, and a patched page is equal to a loaded one."""
    page = Document(create_client(fleet.FAILING).get("/").text)
    shown = {
        attrs["data-cell"]: "".join(text).strip()
        for _, attrs, text in page.elements
        if "data-cell" in attrs
    }
    view = overview_page.build_view(fleet.FAILING)
    for cell, text in view.texts.items():
        if text.endswith("Z") and text.startswith("2026-"):
            assert shown[cell] in (text[11:19], f"{text[:10]} {text[11:19]}")
        else:
            assert shown[cell] == text
    assert set(shown) - set(view.texts) == {f"mark-{state}" for state in overview_page.STATES}


def test_hostile_texts_are_escaped(create_client) -> None:
    """A device whose name is a script is shown, and the script is not run."""
    html = create_client(fleet.HOSTILE).get("/").text
    page = Document(html)
    assert fleet.SCRIPT not in html
    assert "<img" not in html
    row = overview_page.build_view(fleet.HOSTILE).rows["errors"][0]
    assert page.text("data-cell", f"errors/{row}/device") == fleet.SCRIPT
    row = overview_page.build_view(fleet.HOSTILE).rows["changes"][0]
    assert fleet.SCRIPT in page.text("data-cell", f"changes/{row}/subject")


def test_a_first_run_shows_commands_instead_of_zeros(create_client) -> None:
    """The page has three commands and no table."""
    html = create_client(fleet.EMPTY).get("/").text
    assert html.count("<code>poller ") == 3
    assert "<table" not in html


@pytest.mark.parametrize("overview", [fleet.EMPTY, unreadable], ids=["first run", "unreadable"])
def test_every_command_on_the_page_exists(
    create_client, overview, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands and options on the page are those of the real command line."""
    commands = re.findall("<code>poller ([^<]+)</code>", create_client(overview).get("/").text)
    assert commands
    for command in commands:
        words = command.split()
        assert (
            cli.run([*itertools.takewhile(lambda word: word.isalpha(), words[:2]), "--help"]) == 0
        )
        options = {word for word in words if word.startswith("--")}
        assert options <= set(capsys.readouterr().out.split())


def test_an_unreadable_board_is_named(create_client) -> None:
    """The page responds with 200, and names the store that does not response."""
    response = create_client(unreadable).get("/")
    assert response.status_code == 200
    assert (
        "Cannot read the board: cannot use Redis at 127.0.0.1:1/0 (ConnectionError)."
        in response.text
    )
    assert "<code>poller status</code>" in response.text


def test_without_scripts_the_page_offers_to_reload_itself(create_client) -> None:
    """The reload needs a click, and browsers with scripts never do it."""
    client = create_client(fleet.HEALTHY)
    assert 'http-equiv="refresh"' not in client.get("/").text
    assert (
        '<noscript><meta http-equiv="refresh" content="30"></noscript>'
        in client.get("/?refresh=30").text
    )
    assert client.get("/?refresh=-1").status_code == 422


def test_a_theme_is_remembered_without_scripts(create_client) -> None:
    """The link sets a cookie and the cookie sets the theme; an invalid cookie is ignored."""
    client = create_client(fleet.HEALTHY)
    assert 'data-theme="system"' in client.get("/").text
    assert 'data-theme="dark"' in client.get("/?theme=dark").text
    assert 'data-theme="dark"' in client.get("/").text
    client.cookies.set("poller_theme", '"><script>')
    assert 'data-theme="system"' in client.get("/").text


def test_only_web_addresses_become_links(create_client) -> None:
    """A setting cannot put a script into the header."""
    links = {"Flower": "http://127.0.0.1:5555", "Evil": "javascript:alert(1)"}
    html = create_client(fleet.HEALTHY, links=links).get("/").text
    assert '<a href="http://127.0.0.1:5555">Flower</a>' in html
    assert "Evil" not in html


def test_tables_have_captions_and_scoped_headings(create_client) -> None:
    """Screen readers need both."""
    page = Document(create_client(fleet.FAILING).get("/").text)
    assert len(page.tags("caption")) == len(page.tags("table")) == 7
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.tags("th"))


def test_changes_are_newest_first_and_bad_changes_are_marked(create_client) -> None:
    """There are ten rows. A bad change has a glyph, because colour alone is not enough."""
    shown = overview_page.build_view(fleet.FAILING)
    keys = shown.rows["changes"]
    assert len(keys) == 10
    assert [shown.texts[f"changes/{key}/at"] for key in keys] == sorted(
        (shown.texts[f"changes/{key}/at"] for key in keys), reverse=True
    )
    words = [shown.texts[f"changes/{key}/change"] for key in keys[:2]]
    assert words == ["▲ device went down", "device recovered"]
    assert (
        f"changes/{keys[0]}/change" in shown.tones,
        f"changes/{keys[1]}/change" in shown.tones,
    ) == (True, False)
    page = Document(create_client(fleet.FAILING).get("/").text)
    assert page.text("data-cell", f"changes/{keys[0]}/subject") == "ap-0412.west/snmp"


def test_pictures_have_descriptions(create_client) -> None:
    """The description of each plot includes its holes."""
    labels = [
        svg["aria-label"] or ""
        for svg in Document(create_client(fleet.FAILING).get("/").text).tags("svg")
    ]
    ages, *lines = labels
    assert ages == "The age of the last good poll is not known yet."
    assert [label.split(" over ")[0] for label in lines] == ["Throughput", "p99 lateness"]
    assert all("Nothing was polled for 1 m 10 s." in label for label in lines)
