"""Responses to wrong addresses: a page for a browser, plain text or JSON for a program."""

from __future__ import annotations

import pytest
import web_overviews as fleet

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize(
    ("path", "status", "words", "root"),
    [
        ("/foo", 404, "There is no page /foo here.", "./"),
        ("/foo/bar", 404, "There is no page /foo/bar here.", "../"),
        ("/jobs/nope", 404, "No job named &#34;nope&#34;.", "../"),
        ("/?refresh=-1", 422, "refresh=-1, input should be greater than or equal to 0.", "./"),
    ],
)
def test_a_browser_gets_a_page(
    create_client, path: str, status: int, words: str, root: str
) -> None:
    """The page says what was wrong and links back to the overview."""
    response = create_client(fleet.HEALTHY).get(path, headers=BROWSER)
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("text/html")
    assert words in response.text
    assert f'<a href="{root}">Back to the overview</a>' in response.text
    assert f'<link rel="stylesheet" href="{root.removeprefix("./")}static/style-' in response.text


@pytest.mark.parametrize("headers", [{}, {"Accept": "*/*"}, {"Accept": "application/json"}])
def test_a_program_gets_plain_text_or_json(create_client, headers: dict[str, str]) -> None:
    """A request that does not accept HTML gets no page."""
    client = create_client(fleet.HEALTHY)
    assert client.get("/foo", headers=headers).json() == {"detail": "Not Found"}
    assert client.get("/jobs/nope", headers=headers).text == 'no job named "nope"\n'
    assert client.get("/?refresh=zzz", headers=headers).json()["detail"][0]["loc"] == [
        "query",
        "refresh",
    ]


@pytest.mark.parametrize(
    "path", ["/api/foo", "/api/devices/nope/rates", "/api/devices/nope/rates?limit=0"]
)
def test_the_api_returns_json_to_a_browser_too(create_client, path: str) -> None:
    """An address below /api/ never returns a page."""
    response = create_client(fleet.HEALTHY).get(path, headers=BROWSER)
    assert response.status_code in (404, 422)
    assert response.headers["Content-Type"] == "application/json"


def test_a_write_to_the_site_gets_an_explanation(create_client) -> None:
    """The page says that the site is read-only, and the response allows GET."""
    response = create_client(fleet.HEALTHY).post("/", headers=BROWSER)
    assert (response.status_code, response.headers["Allow"]) == (405, "GET")
    assert "<h1>Read-only</h1>" in response.text


def test_an_address_is_escaped(create_client) -> None:
    """An address cannot put a script into the error page."""
    assert (
        "<script>"
        not in create_client(fleet.HEALTHY)
        .get("/%3Cscript%3Ealert(1)%3C/script%3E", headers=BROWSER)
        .text
    )


def test_an_error_page_has_the_theme_of_the_cookie(create_client) -> None:
    """Also when the theme of the address is the error. An unknown theme is ignored."""
    client = create_client(fleet.HEALTHY)
    for cookie, theme in (("dark", "dark"), ("pink", "system")):
        response = client.get(
            "/devices/sw1?theme=pink", headers={**BROWSER, "Cookie": f"poller_theme={cookie}"}
        )
        assert f'data-theme="{theme}"' in response.text
