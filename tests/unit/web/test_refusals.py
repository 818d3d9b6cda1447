"""Addresses that lead nowhere: a page with a way home for a browser, what it always was for a program."""

from __future__ import annotations

import pytest
import web_overviews as fleet

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("path", "status", "words", "home"),
    [
        ("/foo", 404, "There is no page /foo here.", "./"),
        ("/foo/bar", 404, "There is no page /foo/bar here.", "../"),
        ("/devices/nope", 404, "No device named &#34;nope&#34;.", "../"),
        (
            "/devices/sw1?since=zzz",
            422,
            "This address cannot be read: since=zzz, input should be",
            "../",
        ),
        ("/?refresh=-1", 422, "refresh=-1, input should be greater than or equal to 0.", "./"),
    ],
)
def test_a_browser_gets_a_page(ask, path: str, status: int, words: str, home: str) -> None:
    """In the usual frame, with what was wrong and a link that leads back from there."""
    answer = ask(fleet.HEALTHY).get(path, headers=BROWSER)
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith("text/html")
    assert words in answer.text
    assert f'<a href="{home}">Back to the overview</a>' in answer.text
    assert f'<link rel="stylesheet" href="{home}static/overview-' in answer.text


@pytest.mark.parametrize("headers", [{}, {"Accept": "*/*"}, {"Accept": "application/json"}])
def test_a_program_gets_what_it_always_got(ask, headers: dict[str, str]) -> None:
    client = ask(fleet.HEALTHY)
    assert client.get("/foo", headers=headers).json() == {"detail": "Not Found"}
    assert client.get("/devices/nope", headers=headers).text == 'no device named "nope"\n'
    assert client.get("/devices/nope?since=zzz", headers=headers).json()["detail"][0]["loc"] == [
        "query",
        "since",
    ]


@pytest.mark.parametrize(
    "path", ["/api/foo", "/api/devices/nope/rates", "/api/devices/nope/rates?limit=0"]
)
def test_the_api_keeps_json_whoever_asks(ask, path: str) -> None:
    """People look at it with a browser, too."""
    answer = ask(fleet.HEALTHY).get(path, headers=BROWSER)
    assert answer.status_code in (404, 422)
    assert answer.headers["Content-Type"] == "application/json"


def test_only_reading_is_said_in_words(ask) -> None:
    answer = ask(fleet.HEALTHY).post("/", headers=BROWSER)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET")
    assert "<h1>Only for reading</h1>" in answer.text


def test_an_address_is_no_markup(ask) -> None:
    assert (
        "<script>"
        not in ask(fleet.HEALTHY).get("/%3Cscript%3Ealert(1)%3C/script%3E", headers=BROWSER).text
    )


def test_the_theme_of_last_time_is_kept(ask) -> None:
    """Also where the address is what could not be read; a strange choice is none."""
    client = ask(fleet.HEALTHY)
    for cookie, theme in (("dark", "dark"), ("pink", "system")):
        answer = client.get(
            "/devices/sw1?theme=pink", headers={**BROWSER, "Cookie": f"poller_theme={cookie}"}
        )
        assert f'data-theme="{theme}"' in answer.text
