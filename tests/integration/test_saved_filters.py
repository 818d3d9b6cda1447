"""Saved filters: by page, API and command line; whose they are, and who sees them."""

from __future__ import annotations

import html
import re
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.cli import main
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import imports
from poller.domain.access.scopes import Role, Scope
from poller.domain.fleet import saved_filter
from poller.service.fleet import filter_actions
from tests.integration import test_target_pages as inventory
from tests.integration.access_sites import BROWSER, KIM, Site, browser_of, form_token


@pytest.fixture
def site(services: Services) -> Site:
    """Twelve devices at two sites and at none."""
    imports.apply_import(services.engine, [inventory.row(number) for number in range(12)])
    inventory.place(services)
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    client = site.client(**BROWSER)
    client.headers["accept"] = "text/html"
    return client


def send(browser: Any, act: str, name: str, where: str = "site:fra", **fields: str) -> Any:
    token = form_token(browser.get("/devices").text)
    form = {"csrf_token": token, "act": act, "name": name, "where": where, **fields}
    return browser.post("/devices", data=form)


def links(page: str) -> dict[str, str]:
    """The addresses of the saved filters by their titles."""
    found = re.search(r'aria-label="Saved filters">(.*?)</nav>', page, re.DOTALL)
    rows = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', found[1]) if found else []
    return {html.unescape(title): html.unescape(url) for url, title in rows}


def test_a_view_is_saved_under_a_name_and_found_again(browser: Any, site: Site) -> None:
    """The link has filter and order, is marked while it is shown, and survives a change."""
    saved = send(browser, "save", "west", "site:fra state:failing", sort="worst")
    assert saved.status_code == 303
    page = browser.get("/" + saved.headers["location"]).text
    assert links(page) == {"west": "?where=site%3Afra+state%3Afailing&sort=worst"}
    assert re.search(r'aria-current="true">west</a>', page)
    assert "poller filter save NAME --where &#39;site:fra state:failing&#39; --sort worst" in page
    send(browser, "save", "west", "site:ber")
    assert links(browser.get("/devices").text) == {"west": "?where=site%3Aber"}
    entry = audit_rows.listing(site.services.engine, AuditQuery(limit=1))[0]
    assert (entry.action, entry.subject) == ("filter.save", "west")
    send(browser, "remove", "west")
    assert links(browser.get("/devices").text) == {}
    assert send(browser, "remove", "west").status_code == 404


@pytest.mark.parametrize(
    ("name", "where", "words"),
    [
        ("", "site:fra", "the name is empty"),
        ("two words", "site:fra", "contains"),
        ("x" * 61, "site:fra", "more than 60 characters"),
        ("all", "", "this is the whole list"),
        ("gone", "site:nowhere", "nowhere"),
    ],
)
def test_a_wrong_name_keeps_what_was_typed(browser: Any, name: str, where: str, words: str) -> None:
    """The page says what is wrong, and nothing is saved."""
    refused = send(browser, "save", name, where)
    assert refused.status_code == 422
    assert words in html.unescape(refused.text).lower()
    assert links(browser.get("/devices").text) == {}


def test_an_owner_has_a_bounded_number(browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one is refused, and one of them can still be replaced."""
    monkeypatch.setattr(saved_filter, "MOST", 2)
    for name in ("a", "b"):
        send(browser, "save", name)
    refused = send(browser, "save", "c")
    assert "you have 2 saved filters already" in refused.text
    assert send(browser, "save", "b", "site:ber").status_code == 303


def test_others_see_what_is_shared_and_nothing_else(site: Site) -> None:
    """A viewer saves filters, and may not share them; the names of others are beside theirs."""
    operator = browser_of(site, Role.OPERATOR)
    send(operator, "save", "mine")
    send(operator, "save", "ours", shared="yes")
    viewer = browser_of(site, Role.VIEWER)
    page = viewer.get("/devices").text
    assert list(links(page)) == ["ours (operator)"]
    assert 'name="shared"' not in page
    assert send(viewer, "save", "theirs").status_code == 303
    assert send(viewer, "save", "theirs", shared="yes").status_code == 403
    assert send(viewer, "remove", "ours").status_code == 404
    assert list(links(operator.get("/devices").text)) == ["mine", "ours"]


def test_a_form_without_its_token_saves_nothing(browser: Any) -> None:
    """Another site cannot fill the list."""
    form = {"act": "save", "name": "west", "where": "site:fra"}
    assert browser.post("/devices", data=form).status_code == 403


def test_the_api_has_the_same_filters(site: Site) -> None:
    """A token sees its own and shared ones; one of a single site has none."""
    filter_actions.save(site.services, KIM, "ours", "site:fra", shared=True)
    client = site.client(**site.token(Scope.READ, Scope.OPERATE))
    saved = client.put("/api/v1/filters/mine", json={"where": "state:failing", "sort": "worst"})
    assert saved.json()["owner"]
    found = client.get("/api/v1/filters").json()["items"]
    assert [(item["name"], item["shared"]) for item in found] == [("mine", False), ("ours", True)]
    wrong = client.put("/api/v1/filters/mine", json={"where": "colour:red"})
    assert wrong.status_code == 422
    assert "where" in str(wrong.json())
    assert client.delete("/api/v1/filters/mine").status_code == 204
    assert client.delete("/api/v1/filters/ours").status_code == 404
    limited = site.client(**site.token(Scope.READ, name="one", site="fra"))
    assert limited.get("/api/v1/filters").status_code == 403


def test_the_command_line_lists_all_and_removes_those_of_others(
    browser: Any, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """A person on the host looks after what people left."""
    send(browser, "save", "west", "site:fra state:failing")
    assert main.run(["filter", "save", "slow", "--sort", "last_ok"]) == 0
    assert main.run(["filter"]) == 0
    shown = capsys.readouterr().out
    assert "site:fra state:failing" in shown
    assert "last_ok" in shown
    assert main.run(["filter", "rm", "west"]) == 3
    owner = next(each.owner for each in filter_actions.listing(site.services, KIM, everyone=True)
                 if each.name == "west")  # fmt: skip
    assert main.run(["filter", "rm", "west", "--owner", owner]) == 0
    assert main.run(["filter", "rm", "slow"]) == 0
    capsys.readouterr()
    main.run(["filter"])
    assert "no saved filter yet" in capsys.readouterr().err
