"""The page and the API of one device: how it stands, its rates, their verdicts and a picture of each."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ET

import pytest
import web_overviews as fleet
import web_rates
import web_standings

from poller import errors
from poller.db.record.stored_readings import Stored
from poller.presentation.device_state import Standing
from poller.web.backend_queries import Sources
from poller.web.pages.device_page import Asking
from poller.web.routes import create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


def site(stored: list[Stored], *targets: str) -> TestClient:
    return TestClient(
        create_app(Sources(lambda: fleet.HEALTHY, dict, {}, web_rates.answering(stored, targets)))
    )


def rows(html: str, caption: str = "Rates") -> list[list[str]]:
    table = html[html.index(f"<caption>{caption}</caption>") :]
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    plain = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("</tr>")
    ]
    return [cells for cells in plain if cells]


def pictures(html: str) -> list[ET.Element]:
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html)]


def drawn(picture: ET.Element, css: str) -> list[ET.Element]:
    return [part for part in picture.iter() if css in (part.get("class") or "").split()]


def test_a_page_shows_traffic_first() -> None:
    """Octets in 64 bits, as bit/s, with a picture each; the other counters are one click away."""
    html = site(web_rates.polls()).get("/devices/sw1").text
    found = rows(html)
    assert [(cells[0], cells[1]) for cells in found[:2]] == [
        ("eth1", "ifHCInOctets"),
        ("eth1", "ifHCOutOctets"),
    ]
    assert len(found) == 6
    assert all(cells[2].endswith("bit/s") and cells[6] == "ok" for cells in found)
    assert len(pictures(html)) == 6
    assert '<a href="?metric=ifInErrors&amp;since=1h">ifInErrors</a>' in html


def test_rows_of_several_targets_say_whose_they_are() -> None:
    """Two targets may read the same counter; one alone says nothing of itself."""
    html = site(web_rates.polls(), "fast", "slow").get("/devices/sw1").text
    assert [cells[0] for cells in rows(html)[::6]] == [
        f'eth1 <span class="note">{target}</span>' for target in ("fast", "slow")
    ]


def test_another_counter_and_another_time() -> None:
    """Each is an address of its own, and the terminal's words for it are beside."""
    html = site(web_rates.polls(300)).get("/devices/sw1?metric=ifInErrors&since=6h").text
    assert {cells[1] for cells in rows(html)} == {"ifInErrors"}
    assert "poller readings sw1 --rate --since 6h --metric ifInErrors" in html
    assert '<a href="?metric=ifInErrors&amp;since=6h" aria-current="true">6h</a>' in html


def test_a_reset_is_a_tick_and_lost_polls_are_a_hole() -> None:
    """The line breaks, the hole is shaded, and the picture says so in words."""
    html = site(web_rates.polls(50, 1, lost=range(10, 20), restart=30)).get("/devices/sw1").text
    picture = pictures(html)[0]
    assert len(drawn(picture, "tick")) == 1
    assert len(drawn(picture, "gap")) == 2  # before the first poll, and the lost ones
    [line] = drawn(picture, "line")
    assert (line.get("d") or "").count("M") >= 2
    assert "1 reset." in (picture.get("aria-label") or "")


def test_a_verdict_gives_its_reason() -> None:
    """With a mark, not by colour alone."""
    stored = web_rates.polls(5, 1, restart=1)
    [cells, _] = rows(site(stored[:-1]).get("/devices/sw1").text)
    assert re.fullmatch(r"\S reset: the device restarted", cells[6])
    assert cells[2] == "–"


def test_pages_of_fifty() -> None:
    """The next one is there while there is more."""
    client = site(web_rates.polls(3, 60))
    first = client.get("/devices/sw1").text
    assert len(rows(first)) == 50
    assert 'href="?since=1h&amp;page=2" rel="next"' in first
    assert "previous" not in first
    last = client.get("/devices/sw1?page=3").text
    assert len(rows(last)) == 20
    assert 'rel="next"' not in last
    assert 'href="?since=1h&amp;page=2" rel="prev"' in last


def test_a_page_stays_small_whatever_is_asked() -> None:
    """A day of a large device: at most 100 KB on the wire."""
    answer = site(web_rates.polls(1440, 50)).get("/devices/sw1?since=24h")
    assert int(answer.headers["Content-Length"]) < 100_000


@pytest.mark.parametrize(
    ("stored", "words"),
    [([], "Nothing has been read yet."), (web_rates.polls(0), "first")],
    ids=["none", "one"],
)
def test_too_little_to_show_is_said(stored: list[Stored], words: str) -> None:
    """Nothing polled, or one poll only."""
    assert words in site(stored).get("/devices/sw1").text


def standing_site(stored: list[Stored], standing: Standing) -> TestClient:
    rates = web_rates.answering(stored)
    return TestClient(
        create_app(Sources(lambda: fleet.HEALTHY, dict, {}, rates, standing=lambda *_: standing))
    )


def test_a_device_that_never_answered_is_not_called_unpolled() -> None:
    """Since when it is polled, the last error, and the command that tells more."""
    html = standing_site([], web_standings.never_answered()).get("/devices/sw1").text
    words = (
        r"Tried since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, and never an answer\. "
        r"The last error, 4 s ago: timeout: no answer from 192\.0\.2\.1\. <code>poller runs sw1</code>"
    )
    assert re.search(words, html)
    assert "Nothing has been" not in html


def test_a_device_is_introduced_and_its_targets_come_before_the_rates() -> None:
    """Address, site, and a row for each target, with its error as text."""
    html = standing_site(web_rates.polls(), web_standings.never_answered()).get("/devices/sw1").text
    assert "<code>192.0.2.1</code> <span>site west</span>" in html
    [cells] = rows(html, "Targets")
    assert cells[0] == "snmp"
    assert cells[1].startswith("■ failing")
    assert cells[2:6] == ["snmp", "1m", "never", "in 56 s"]
    assert cells[6] == "timeout: no answer from 192.0.2.1"
    assert html.index("<caption>Targets") < html.index("<caption>Rates")


def test_rates_are_shown_without_the_board() -> None:
    """They are in the database; that nobody knows how the targets stand is said."""
    html = (
        standing_site(web_rates.polls(), Standing("192.0.2.1", trouble="cannot use Redis"))
        .get("/devices/sw1")
        .text
    )
    assert "Cannot see the board: cannot use Redis." in html
    assert "○ unknown" in html
    assert len(rows(html)) == 6


def test_errors_of_a_device_are_no_markup() -> None:
    """A device says what it likes, and it is only shown."""
    html = (
        standing_site([], web_standings.never_answered(message="<script>alert(1)</script>"))
        .get("/devices/sw1")
        .text
    )
    assert "<script>" not in html


def test_texts_of_a_device_are_no_markup() -> None:
    """A name from the address, or from a device, is only shown."""
    client = site(web_rates.polls(2))
    assert "<b>port" not in client.get("/devices/sw1").text
    answer = client.get("/devices/%3Cscript%3E")
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("query", ["since=2y", "page=0", "page=x", "theme=pink"])
def test_an_address_that_means_nothing_is_refused(query: str) -> None:
    """Not guessed at."""
    assert site(web_rates.polls(2)).get(f"/devices/sw1?{query}").status_code == 422


def test_programs_get_raw_rates() -> None:
    """Octets a second, as the command line gives them; over a span all of them."""
    client = site(web_rates.polls(10, 1))
    found = client.get("/api/devices/sw1/rates?metric=HCIn&since=5m30s").json()
    assert (found["schema"], found["device"], found["total"]) == ("poller.rates/1", "sw1", 1)
    [item] = found["items"]
    assert (item["metric"], item["verdict"], len(item["rates"])) == ("ifHCInOctets", "ok", 6)
    assert item["per_second"] == item["rates"][-1]["per_second"] > 0
    assert item["rates"][0]["at"].endswith("Z")
    newest = client.get("/api/devices/sw1/rates?limit=1").json()
    assert (len(newest["items"]), newest["total"], "rates" in newest["items"][0]) == (1, 4, False)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/devices/sw9/rates", 404, 'no device named "sw9"'),
        ("/api/devices/sw1/rates?since=soon", 400, '"soon" is not a duration'),
    ],
)
def test_the_api_says_what_is_wrong(path: str, status: int, words: str) -> None:
    """In the form of all its errors."""
    answer = site(web_rates.polls(2)).get(path)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_a_database_that_does_not_answer_is_named() -> None:
    """On the page and in the API."""

    def down(device: str, asked: object) -> list[web_rates.TargetRates]:
        raise errors.StoreUnavailable("cannot use the database", "OperationalError")

    client = TestClient(create_app(Sources(lambda: fleet.HEALTHY, dict, {}, down)))
    for path in ("/devices/sw1", "/api/devices/sw1/rates"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "cannot use the database" in answer.text


def test_traffic_is_that_of_the_device_and_not_of_each_target() -> None:
    """A target that counts no octets adds nothing to it; where none does, all counters are shown."""
    ports, processor = web_rates.polls(2, 1), web_rates.counting("ssCpuRawIdle")
    both = web_rates.of_targets(
        {"ports": ports, "processor": processor}, Asking().asked(web_rates.now_ms())
    )
    found = [[line.series.name for line in each.result.lines] for each in both]
    assert found == [
        ["ifHCInOctets", "ifHCOutOctets"],
        [],
    ]
    [alone] = web_rates.of_targets({"processor": processor}, Asking().asked(web_rates.now_ms()))
    assert [line.series.name for line in alone.result.lines] == ["ssCpuRawIdle"]
