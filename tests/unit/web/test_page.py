"""The page as HTML: whole without scripts, safe with any text in it."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser

import pytest
import web_overviews as fleet

from poller import errors
from poller.cli import main as cli
from poller.domain.record.overview import Overview
from poller.web.pages import overview_page

VOID = {"meta", "link", "img", "br", "input"}


class Document(HTMLParser):
    """Elements with their attributes and text, in order; fails on tags that do not match."""

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


EVERY = {
    "healthy": fleet.HEALTHY,
    "failing": fleet.FAILING,
    "late": fleet.LATE,
    "empty": fleet.EMPTY,
    "no leader": fleet.NO_LEADER,
    "no workers": fleet.NO_WORKERS,
    "hostile": fleet.HOSTILE,
}


@pytest.mark.parametrize("overview", EVERY.values(), ids=EVERY.keys())
def test_every_page_is_well_formed_and_nothing_in_it_is_inline(ask, overview: Overview) -> None:
    """No style attribute, no event handler, no script but our own file: the CSP would refuse them."""
    page = Document(ask(overview).get("/").text)
    for tag, attributes, _ in page.elements:
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]
        assert tag != "style"
    assert all(
        (script["src"] or "").startswith("static/overview-") for script in page.tags("script")
    )
    assert len(page.tags("script")) == 1


@pytest.mark.parametrize("overview", EVERY.values(), ids=EVERY.keys())
def test_the_sentence_is_the_heading_and_the_title_carries_the_count(
    ask, overview: Overview
) -> None:
    """Whoever reads one line reads the right one."""
    page = Document(ask(overview).get("/").text)
    made = overview_page.present(overview)
    assert page.text("data-cell", "health") == made.health.text
    assert page.text("data-cell", "title") == made.health.title


def test_every_cell_of_the_stream_is_on_the_page_with_the_same_text(ask) -> None:
    """A patch finds its cell, and a loaded page reads like a patched one."""
    page = Document(ask(fleet.FAILING).get("/").text)
    shown = {
        attrs["data-cell"]: "".join(text).strip()
        for _, attrs, text in page.elements
        if "data-cell" in attrs
    }
    made = overview_page.present(fleet.FAILING)
    for cell, text in made.texts.items():
        if text.endswith("Z") and text.startswith("2026-"):
            assert shown[cell] in (text[11:19], f"{text[:10]} {text[11:19]}")
        else:
            assert shown[cell] == text
    assert set(shown) - set(made.texts) == {f"mark-{state}" for state in overview_page.STATES}


def test_hostile_texts_stay_texts(ask) -> None:
    """A device may call itself a script; it is shown, never run."""
    html = ask(fleet.HOSTILE).get("/").text
    page = Document(html)
    assert fleet.SCRIPT not in html
    assert "<img" not in html
    row = overview_page.present(fleet.HOSTILE).rows["errors"][0]
    assert page.text("data-cell", f"errors/{row}/device") == fleet.SCRIPT
    row = overview_page.present(fleet.HOSTILE).rows["changes"][0]
    assert fleet.SCRIPT in page.text("data-cell", f"changes/{row}/subject")


def test_a_first_run_shows_what_to_do_instead_of_zeros(ask) -> None:
    """Three commands, and no table of nothing."""
    html = ask(fleet.EMPTY).get("/").text
    assert html.count("<code>poller ") == 3
    assert "<table" not in html


@pytest.mark.parametrize("overview", [fleet.EMPTY, unreadable], ids=["first run", "unreadable"])
def test_every_command_on_the_page_exists(
    ask, overview, capsys: pytest.CaptureFixture[str]
) -> None:
    """Advice that does not work is worse than none: names and options are those of the real command line."""
    commands = re.findall("<code>poller ([^<]+)</code>", ask(overview).get("/").text)
    assert commands
    for command in commands:
        words = command.split()
        assert (
            cli.run([*itertools.takewhile(lambda word: word.isalpha(), words[:2]), "--help"]) == 0
        )
        options = {word for word in words if word.startswith("--")}
        assert options <= set(capsys.readouterr().out.split())


def test_a_board_that_cannot_be_read_is_the_news(ask) -> None:
    """The page still answers, and names what does not."""
    answer = ask(unreadable).get("/")
    assert answer.status_code == 200
    assert (
        "Cannot see the board: cannot use Redis at 127.0.0.1:1/0 (ConnectionError)." in answer.text
    )
    assert "<code>poller status</code>" in answer.text


def test_without_scripts_the_page_offers_to_reload_itself(ask) -> None:
    """The reload is asked for, not forced, and browsers with scripts never do it."""
    client = ask(fleet.HEALTHY)
    assert 'http-equiv="refresh"' not in client.get("/").text
    assert (
        '<noscript><meta http-equiv="refresh" content="30"></noscript>'
        in client.get("/?refresh=30").text
    )
    assert client.get("/?refresh=-1").status_code == 422


def test_a_theme_is_remembered_without_scripts(ask) -> None:
    """The link sets a cookie, the cookie sets the page; nonsense in it is ignored."""
    client = ask(fleet.HEALTHY)
    assert 'data-theme="system"' in client.get("/").text
    assert 'data-theme="dark"' in client.get("/?theme=dark").text
    assert 'data-theme="dark"' in client.get("/").text
    client.cookies.set("poller_theme", '"><script>')
    assert 'data-theme="system"' in client.get("/").text


def test_only_web_addresses_become_links(ask) -> None:
    """A setting cannot smuggle a script into the header."""
    links = {"Flower": "http://127.0.0.1:5555", "Evil": "javascript:alert(1)"}
    html = ask(fleet.HEALTHY, links=links).get("/").text
    assert '<a href="http://127.0.0.1:5555">Flower</a>' in html
    assert "Evil" not in html


def test_tables_are_tables(ask) -> None:
    """Each has a caption and scoped headings, for those who cannot see it."""
    page = Document(ask(fleet.FAILING).get("/").text)
    assert len(page.tags("caption")) == len(page.tags("table")) == 6
    assert all(attrs.get("scope") in ("col", "row") for attrs in page.tags("th"))


def test_changes_are_newest_first_and_bad_ones_are_marked(ask) -> None:
    """Ten rows, each with a word for what happened; colour is not the only sign."""
    shown = overview_page.present(fleet.FAILING)
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
    page = Document(ask(fleet.FAILING).get("/").text)
    assert page.text("data-cell", f"changes/{keys[0]}/subject") == "ap-0412.west/snmp"


def test_pictures_have_words(ask) -> None:
    """Each plot says in a sentence what it shows, holes included."""
    labels = [
        svg["aria-label"] or "" for svg in Document(ask(fleet.FAILING).get("/").text).tags("svg")
    ]
    assert [label.split(" over ")[0] for label in labels] == ["Throughput", "p99 lateness"]
    assert all("Nothing was polled for 1 m 10 s." in label for label in labels)
