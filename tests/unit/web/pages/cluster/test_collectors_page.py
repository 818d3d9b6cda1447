"""The collectors page and its API: installed collectors, their workers, and unusable ones."""

from __future__ import annotations

import pytest
import web_clients
import web_collectors

from poller import errors
from poller.web.pages.cluster.collectors_page import CollectorsStatus, default_text


def client(status: CollectorsStatus = web_collectors.STATUS) -> web_clients.TestClient:
    return web_clients.create(collectors=lambda: status)


def test_the_api_returns_the_collectors_with_their_option_schemas() -> None:
    """The document is that of `poller collectors --json`, with the number of workers."""
    body = client().get("/api/collectors").json()
    assert (body["schema"], body["api_version"], body["api_served"]) == (
        "poller.collectors/1",
        1,
        [1],
    )
    items = {item["name"]: item for item in body["items"]}
    assert items["snmp"]["schema"]["properties"]["port"]["maximum"] == 65535
    assert (items["snmp"]["workers"], items["routeros"]["workers"]) == (2, 1)
    assert (items["snmp"]["state"], items["routeros"]["state"]) == ("ok", "quarantined")
    assert [(each["name"], each["state"]) for each in body["broken"]] == [
        ("olt", "failed to import")
    ]
    assert body["doubted"][0]["crashes"] == 3


def test_the_page_shows_state_workers_and_options() -> None:
    """A quarantined collector has its reason, and an option its description."""
    html = client().get("/collectors").text
    assert "■ quarantined" in html
    assert "it ended its process" in html
    assert "2 of 2" in html
    assert "UDP port of the agent" in html


def test_unusable_collectors_come_first() -> None:
    """A collector that is broken here has its reason; one of a worker has the worker's name."""
    html = client().get("/collectors").text
    assert html.index("Cannot be used") < html.index("Installed")
    assert "ImportError: no vendor library" in html
    assert "worker2@b" in html


def test_texts_of_a_plugin_are_escaped() -> None:
    """The import error of a plugin cannot put a script into the page."""
    bad = "<script>alert(1)</script>"
    html = client(web_collectors.status(import_error=bad)).get("/collectors").text
    assert bad not in html
    assert "&lt;script&gt;" in html


def test_an_error_of_redis_is_shown() -> None:
    """The page and the API respond with 503 and the error."""

    def unavailable() -> CollectorsStatus:
        raise errors.StoreUnavailable("Redis does not answer")

    for path in ("/collectors", "/api/collectors"):
        response = web_clients.create(collectors=unavailable).get(path)
        assert response.status_code == 503
        assert "Redis does not answer" in response.text


def test_the_overview_links_to_the_collectors() -> None:
    """The link is in the header."""
    assert 'href="collectors"' in client().get("/").text


def test_no_collector_is_not_an_error() -> None:
    """A process without collectors has an empty page."""
    assert web_clients.create().get("/collectors").status_code == 200


@pytest.mark.parametrize(
    ("default", "text"),
    [(0, "0"), (0.2, "0.2"), (False, "false"), ("", ""), (None, ""), ({}, ""), (("a", "b"), "a,b")],
)
def test_a_default_is_shown_as_it_is_typed(default: object, text: str) -> None:
    """A default of 0 is shown, too."""
    assert default_text({"default": default, "required": False}) == text
