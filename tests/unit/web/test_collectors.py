"""The page and the API of the collectors: what is installed, who has it, and what cannot be used."""

from __future__ import annotations

import warnings

import pytest
import web_overviews as fleet
from web_collectors import FOUND, found

from poller import errors
from poller.web.backend_queries import Sources
from poller.web.pages.collectors_page import written
from poller.web.routes import create_app

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


def site(collectors=lambda: FOUND) -> TestClient:
    return TestClient(create_app(Sources(lambda: fleet.HEALTHY, dict, {}, collectors=collectors)))


def test_programs_get_everything_with_the_schema_of_the_options() -> None:
    """The document of `poller collectors --json`, and how many workers have each."""
    body = site().get("/api/collectors").json()
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


def test_the_page_names_state_workers_and_options() -> None:
    html = site().get("/collectors").text
    assert "■ quarantined" in html
    assert "it ended its process" in html
    assert "2 of 2" in html
    assert "UDP port of the agent" in html


def test_what_cannot_be_used_comes_first_also_on_workers_elsewhere() -> None:
    """With the reason where we know it, else with the place where it can be asked."""
    html = site().get("/collectors").text
    assert html.index("Cannot be used") < html.index("Installed")
    assert "ImportError: no vendor library" in html
    assert "worker2@b" in html


def test_texts_of_a_plugin_are_no_markup() -> None:
    bad = "<script>alert(1)</script>"
    html = site(lambda: found(reason=bad)).get("/collectors").text
    assert bad not in html
    assert "&lt;script&gt;" in html


def test_a_redis_that_does_not_answer_is_said() -> None:
    def down() -> object:
        raise errors.StoreUnavailable("Redis does not answer")

    for path in ("/collectors", "/api/collectors"):
        answer = site(down).get(path)
        assert answer.status_code == 503
        assert "Redis does not answer" in answer.text


def test_the_overview_leads_there() -> None:
    assert 'href="collectors"' in site().get("/").text


def test_nothing_installed_is_no_error() -> None:
    client = TestClient(create_app(Sources(lambda: fleet.HEALTHY, dict, {})))
    assert client.get("/collectors").status_code == 200


@pytest.mark.parametrize(
    ("default", "text"),
    [(0, "0"), (0.2, "0.2"), (False, "false"), ("", ""), (None, ""), ({}, ""), (("a", "b"), "a,b")],
)
def test_a_default_is_shown_as_it_is_typed(default: object, text: str) -> None:
    """Zero is one, too."""
    assert written({"default": default, "required": False}) == text
