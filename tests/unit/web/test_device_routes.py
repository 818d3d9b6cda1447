"""The page and the API of one device: the states of its targets, and its rates."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
import web_clients
import web_device_states
import web_rates

from poller import errors
from poller.db.record.stored_readings import Stored
from poller.presentation.device_state import DeviceState
from poller.web.pages.device.device_page import RatesQuery


def client(
    stored: list[Stored], *targets: str, state: DeviceState | None = None
) -> web_clients.TestClient:
    return web_clients.create(
        rates=web_rates.query(stored, targets),
        device_state=lambda *_: state or DeviceState(),
    )


def rows(html: str, caption: str = "Rates") -> list[list[str]]:
    table = html[html.index(f"<caption>{caption}</caption>") :]
    body = table[table.index("<tbody>") : table.index("</tbody>")]
    cell = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
    found = [cell.findall(row) for row in body.split("</tr>")]
    return [cells for cells in found if cells]


def pictures(html: str) -> list[ET.Element]:
    return [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html)]


def drawn(picture: ET.Element, css: str) -> list[ET.Element]:
    return [part for part in picture.iter() if css in (part.get("class") or "").split()]


def test_a_page_shows_traffic_first() -> None:
    """Rates of 64-bit octets, in bit/s and with a picture; the other counters are links."""
    html = client(web_rates.polls()).get("/devices/sw1").text
    found = rows(html)
    assert [(cells[0], cells[1]) for cells in found[:2]] == [
        ("eth1", "ifHCInOctets"),
        ("eth1", "ifHCOutOctets"),
    ]
    assert len(found) == 6
    assert all(cells[2].endswith("bit/s") and cells[6] == "ok" for cells in found)
    assert len(pictures(html)) == 6
    assert '<a href="?metric=ifInErrors&amp;since=1h">ifInErrors</a>' in html


def test_rows_of_several_targets_name_their_target() -> None:
    """Two targets can read the same counter. The rows of a single target do not name it."""
    html = client(web_rates.polls(), "fast", "slow").get("/devices/sw1").text
    assert [cells[0] for cells in rows(html)[::6]] == [
        f'eth1 <span class="note">{target}</span>' for target in ("fast", "slow")
    ]


def test_counter_and_span_are_in_the_address() -> None:
    """The page also shows the command with the same output."""
    html = client(web_rates.polls(300)).get("/devices/sw1?metric=ifInErrors&since=6h").text
    assert {cells[1] for cells in rows(html)} == {"ifInErrors"}
    assert "poller readings sw1 --rate --since 6h --metric ifInErrors" in html
    assert '<a href="?metric=ifInErrors&amp;since=6h" aria-current="true">6h</a>' in html


def test_the_picture_shows_resets_and_lost_polls() -> None:
    """A reset is a tick; lost polls break the line and are shaded; both are in the description."""
    html = client(web_rates.polls(50, 1, lost=range(10, 20), restart=30)).get("/devices/sw1").text
    picture = pictures(html)[0]
    assert len(drawn(picture, "tick")) == 1
    assert len(drawn(picture, "gap")) == 2  # before the first poll, and the lost ones
    [line] = drawn(picture, "line")
    assert (line.get("d") or "").count("M") >= 2
    assert "1 reset." in (picture.get("aria-label") or "")


def test_a_bad_verdict_has_its_reason() -> None:
    """The verdict has a glyph, because colour alone is not enough."""
    stored = web_rates.polls(5, 1, restart=1)
    [cells, _] = rows(client(stored[:-1]).get("/devices/sw1").text)
    assert re.fullmatch(r"\S reset: the device restarted", cells[6])
    assert cells[2] == "–"


def test_a_page_has_fifty_rows() -> None:
    """There is a link to the next page while there are more rows."""
    browser = client(web_rates.polls(3, 60))
    first = browser.get("/devices/sw1").text
    assert len(rows(first)) == 50
    assert 'href="?since=1h&amp;page=2" rel="next"' in first
    assert "previous" not in first
    last = browser.get("/devices/sw1?page=3").text
    assert len(rows(last)) == 20
    assert 'rel="next"' not in last
    assert 'href="?since=1h&amp;page=2" rel="prev"' in last


def test_the_page_of_a_large_device_is_small() -> None:
    """A day of 50 interfaces takes at most 100 KB, compressed."""
    response = client(web_rates.polls(1440, 50)).get("/devices/sw1?since=24h")
    assert int(response.headers["Content-Length"]) < 100_000


@pytest.mark.parametrize(
    ("stored", "words"),
    [([], "Nothing has been read yet."), (web_rates.polls(0), "first")],
    ids=["none", "one"],
)
def test_a_page_without_rates_says_why(stored: list[Stored], words: str) -> None:
    """There was no poll, or only one."""
    assert words in client(stored).get("/devices/sw1").text


def test_a_device_that_never_answered_is_not_shown_as_unpolled() -> None:
    """The page has the time of the first poll, the last error and a command for more."""
    html = client([], state=web_device_states.never_answered()).get("/devices/sw1").text
    words = (
        r"Polled since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC without a good answer\. "
        r"The last error, 4 s ago: timeout: no answer from 192\.0\.2\.1\. "
        r"<code>poller runs sw1</code>"
    )
    assert re.search(words, html)
    assert "Nothing has been" not in html


def test_the_targets_of_a_device_come_before_its_rates() -> None:
    """The page starts with address and site, then one row per target with its error."""
    html = (
        client(web_rates.polls(), state=web_device_states.never_answered()).get("/devices/sw1").text
    )
    assert "<code>192.0.2.1</code> <span>site west</span>" in html
    [cells] = rows(html, "Targets")
    assert cells[0] == "snmp"
    assert cells[1].startswith("■ failing")
    assert cells[2:6] == ["snmp", "1m", "never", "in 56 s"]
    assert cells[6] == "timeout: no answer from 192.0.2.1"
    assert html.index("<caption>Targets") < html.index("<caption>Rates")


def test_rates_are_shown_when_the_board_cannot_be_read() -> None:
    """The rates are in the database; the states of the targets are unknown."""
    html = (
        client(web_rates.polls(), state=DeviceState("192.0.2.1", board_error="cannot use Redis"))
        .get("/devices/sw1")
        .text
    )
    assert "Cannot read the board: cannot use Redis." in html
    assert "○ unknown" in html
    assert len(rows(html)) == 6


def test_error_messages_are_escaped() -> None:
    """A message of a device cannot put a script into the page."""
    html = (
        client([], state=web_device_states.never_answered(message="<script>alert(1)</script>"))
        .get("/devices/sw1")
        .text
    )
    assert "<script>" not in html


def test_names_are_escaped() -> None:
    """Neither a name in the address nor a label of a device becomes markup."""
    browser = client(web_rates.polls(2, name="<b>\x1b[31m\u202eport"))
    html = browser.get("/devices/sw1").text
    assert r"&lt;b&gt;\u001b[31m\u202eport1" in html
    assert not {"\x1b", "\u202e"} & set(html)
    response = browser.get("/devices/%3Cscript%3E")
    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/plain")


@pytest.mark.parametrize("query", ["since=2y", "page=0", "page=x", "theme=pink"])
def test_an_invalid_parameter_is_refused(query: str) -> None:
    """An invalid parameter is not replaced by a default."""
    assert client(web_rates.polls(2)).get(f"/devices/sw1?{query}").status_code == 422


def test_the_api_returns_raw_rates() -> None:
    """Rates are in octets per second; with a span the response has all rates of the span."""
    browser = client(web_rates.polls(10, 1))
    found = browser.get("/api/devices/sw1/rates?metric=HCIn&since=5m30s").json()
    assert (found["schema"], found["device"], found["total"]) == ("poller.rates/1", "sw1", 1)
    [item] = found["items"]
    assert (item["metric"], item["verdict"], len(item["rates"])) == ("ifHCInOctets", "ok", 6)
    assert item["per_second"] == item["rates"][-1]["per_second"] > 0
    assert item["rates"][0]["at"].endswith("Z")
    newest = browser.get("/api/devices/sw1/rates?limit=1").json()
    assert (len(newest["items"]), newest["total"], "rates" in newest["items"][0]) == (1, 4, False)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/devices/sw9/rates", 404, 'no device named "sw9"'),
        ("/api/devices/sw1/rates?since=soon", 422, '"soon" is not a duration'),
    ],
)
def test_the_api_returns_errors_as_json(path: str, status: int, words: str) -> None:
    """The message is in the field that all errors of the API have."""
    response = client(web_rates.polls(2)).get(path)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]


def test_an_error_of_the_database_is_shown() -> None:
    """The page and the API respond with 503 and the error."""

    def unavailable(device: str, request: object) -> list[web_rates.TargetRates]:
        raise errors.StoreUnavailable("cannot use the database", "OperationalError")

    failing = web_clients.create(rates=unavailable)
    for path in ("/devices/sw1", "/api/devices/sw1/rates"):
        response = failing.get(path)
        assert response.status_code == 503
        assert "cannot use the database" in response.text


def test_traffic_is_selected_over_all_targets_of_a_device() -> None:
    """A target without octets has no rows beside one with octets; alone it shows all counters."""
    ports, processor = web_rates.polls(2, 1), web_rates.one_counter("ssCpuRawIdle")
    both = web_rates.of_targets(
        {"ports": ports, "processor": processor}, RatesQuery().request(web_rates.now_ms())
    )
    found = [[line.series.name for line in each.result.lines] for each in both]
    assert found == [
        ["ifHCInOctets", "ifHCOutOctets"],
        [],
    ]
    [alone] = web_rates.of_targets(
        {"processor": processor}, RatesQuery().request(web_rates.now_ms())
    )
    assert [line.series.name for line in alone.result.lines] == ["ssCpuRawIdle"]
