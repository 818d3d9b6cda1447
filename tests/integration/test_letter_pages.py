"""The pages of dead letters: groups, letters, actions that ask first, and who may do what."""

from __future__ import annotations

import csv
import html
import io
import re
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import imports, targets
from poller.db.record import dead_letter_rows
from poller.domain.access.scopes import Role, Scope
from poller.domain.failures.dead_letter import Letter, Reason
from poller.service import bulk_confirmation
from poller.service.operations import letter_plan
from tests.integration import test_target_pages as inventory
from tests.integration.access_sites import BROWSER, Site, form_token, log_in

NOTHING = "No target is a dead letter"


@pytest.fixture
def site(services: Services) -> Site:
    """60 devices at two sites and at none; nothing is a dead letter."""
    imports.apply_import(services.engine, [inventory.row(number) for number in range(60)])
    inventory.place(services)
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    return browser_of(site)


def browser_of(site: Site) -> Any:
    client = site.client(**BROWSER)
    client.headers["accept"] = "text/html"
    return client


def ids_of(services: Services) -> list[int]:
    """The enabled targets of SNMP, in the order of ids."""
    rows = targets.listing(services.engine, limit=None)
    return [row.id for row in rows if row.enabled and row.collector == "snmp"]


@pytest.fixture
def ids(site: Site) -> list[int]:
    """Nine targets that were refused, of which one with another text, and three that are gone."""
    chosen = polled(site)[:12]
    now_ms = site.services.board.now_ms()
    letters = [
        Letter(
            target_id=target_id,
            last_ms=now_ms - 1_000,
            reason=Reason.AUTH_FAILED if place < 9 else Reason.OPEN_TOO_LONG,
            error_code="auth_failed" if place < 9 else "timeout",
            message="wrong <digest>" if place else "unknown user",
            first_ms=now_ms - 9_000_000,
            parked_ms=now_ms - 7_200_000 + place,
            next_ms=now_ms + 60_000,
            attempts=5,
        )
        for place, target_id in enumerate(chosen)
    ]
    dead_letter_rows.write(site.services.engine, letters)
    return chosen


def polled(site: Site) -> list[int]:
    """Targets that the board polls: enabled, as their devices are."""
    known = dead_letter_rows.Wanted(ids=ids_of(site.services))
    now_ms = site.services.board.now_ms()
    every = [Letter(each, now_ms, Reason.AUTH_FAILED) for each in ids_of(site.services)]
    dead_letter_rows.write(site.services.engine, every)
    found = dead_letter_rows.listing(site.services.engine, known)
    gone = [Letter(each.letter.target_id, now_ms) for each in found]
    dead_letter_rows.write(site.services.engine, gone)
    return sorted(each.letter.target_id for each in found)


def left(site: Site) -> int:
    return dead_letter_rows.count(site.services.engine, dead_letter_rows.Wanted())


def keys(page: str) -> list[str]:
    return [html.unescape(key) for key in re.findall(r'<tr data-key="([^"]*)"', page)]


def act(browser: Any, page: str, action: str, **fields: Any) -> Any:
    form = {"csrf_token": form_token(page), "action": action, **fields}
    return browser.post("/letters/-/act", data=form)


def confirmed(browser: Any, asked: Any) -> Any:
    """Press the button of a plan."""
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', asked.text)
    form = {name: html.unescape(value) for name, value in fields if name != "letter"}
    form["letter"] = [value for name, value in fields if name == "letter"]
    return browser.post("/letters/-/act", data=form)


def test_no_letter_at_all_is_good_news(browser: Any) -> None:
    """And the page says what a dead letter is."""
    page = browser.get("/letters")
    assert page.status_code == 200
    assert NOTHING in page.text
    assert "a target that needs a person" in page.text
    assert 'name="action"' not in page.text


def test_letters_are_grouped_first(browser: Any, ids: list[int]) -> None:
    """The largest group first: its cause, an error, numbers, times, and a link to its letters."""
    page = browser.get("/letters").text
    assert "12 dead letters of 12 devices" in page
    assert "the oldest for 2 h 0 m" in page
    first, second = keys(page)
    assert first.startswith("auth_failed auth_failed snmp")
    assert second.startswith("open_too_long timeout snmp")
    assert "and 1 other text" in page
    [link, _] = re.findall(r'<th scope="row" class="name"><a href="([^"]*)"', page)
    letters = browser.get("/" + html.unescape(link)).text
    assert len(keys(letters)) == 9
    assert "wrong &lt;digest&gt;" in letters
    assert "poller deadletter requeue" in letters


@pytest.mark.parametrize(
    ("view", "groups"), [("text", 3), ("collector", 1), ("site", 3), ("device", 12)]
)
def test_the_groups_are_what_a_reader_chooses(
    browser: Any, ids: list[int], view: str, groups: int
) -> None:
    """Every group leads to as many letters as it has."""
    page = browser.get("/letters", params={"view": view}).text
    assert len(keys(page)) == groups
    links = re.findall(r'data-label="letters"><a href="([^"]*)">(\d+)<', page)
    assert sum(int(number) for _, number in links) == 12
    for link, number in links:
        assert len(keys(browser.get("/" + html.unescape(link)).text)) == int(number)


def test_a_wrong_filter_keeps_its_text(browser: Any, ids: list[int]) -> None:
    """With what is wrong beside it; one that matches nothing offers all."""
    wrong = browser.get("/letters", params={"where": "colour:red"})
    assert wrong.status_code == 422
    assert 'value="colour:red"' in wrong.text
    assert "has no key" in wrong.text
    nothing = browser.get("/letters", params={"where": "tag:absent"}).text
    assert "No dead letter matches." in nothing
    assert "Show all" in nothing


def test_letters_have_pages(browser: Any, site: Site) -> None:
    """Each letter once, the oldest first."""
    now_ms = site.services.board.now_ms()
    found = polled(site)
    many = [Letter(each, now_ms, Reason.AUTH_FAILED, "auth_failed", "no") for each in found]
    dead_letter_rows.write(site.services.engine, many)
    assert len(found) > 40
    from poller.web.pages.work import letters_query

    size, letters_query.LIMIT = letters_query.LIMIT, 20
    try:
        seen: list[str] = []
        address = "/letters?view=letters"
        while address:
            page = browser.get(address).text
            seen += keys(page)
            following = re.search(r'<a href="([^"]*)" rel="next"', page)
            address = "/" + html.unescape(following[1]) if following else ""
    finally:
        letters_query.LIMIT = size
    assert sorted(map(int, seen)) == found


def test_the_file_has_every_letter(browser: Any, ids: list[int]) -> None:
    """Narrowed as the page is; a wrong filter is an error."""
    answer = browser.get("/letters/-/letters.csv", params={"reason": "open_too_long"})
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["code"] for row in found] == ["timeout"] * 3
    assert all(row["parked_at"].endswith("Z") for row in found)
    assert browser.get("/letters/-/letters.csv", params={"where": "x:y"}).status_code == 422


def test_a_requeue_asks_and_then_shows_the_polls(browser: Any, site: Site, ids: list[int]) -> None:
    """Nothing is done before the number is confirmed."""
    page = browser.get("/letters").text
    asked = act(browser, page, "requeue", where="code:timeout", reason="open_too_long")
    assert "Requeue 3 dead letters?" in asked.text
    assert "This cannot be undone" in asked.text
    assert "poller deadletter requeue --reason open_too_long --where code:timeout" in asked.text
    assert "--dry-run" in asked.text
    assert changes(site) == []
    done = confirmed(browser, asked)
    assert "3 dead letters requeued." in done.text
    ticket = re.search(r'href="\.\./\.\./(devices/-/polls/[0-9a-f]+)"', done.text)
    assert ticket
    assert browser.get(f"/{ticket[1]}").status_code == 200
    assert changes(site) == ["dead_letter.requeue"]


def test_another_number_than_the_confirmed_one_does_nothing(
    browser: Any, site: Site, ids: list[int]
) -> None:
    """The page asks again with the number of now."""
    page = browser.get("/letters").text
    asked = act(browser, page, "drop", reason="auth_failed")
    assert "drop as many dead letters" in asked.text
    now_ms = site.services.board.now_ms()
    dead_letter_rows.write(site.services.engine, [Letter(ids[0], now_ms + 1)])
    refused = confirmed(browser, asked)
    assert refused.status_code == 409
    assert "Nothing was done" in refused.text
    assert "By now 8 match." in refused.text
    assert left(site) == 11
    assert changes(site) == []
    assert "8 dead letters dropped" in confirmed(browser, refused).text


def test_dropped_letters_are_taken_back(browser: Any, site: Site, ids: list[int]) -> None:
    """Marked ones only: their targets are disabled, and the way back enables them again."""
    page = browser.get("/letters", params={"view": "letters"}).text
    asked = act(browser, page, "drop", letter=[str(ids[1]), str(ids[2])])
    assert "Disable 2 targets" in asked.text
    assert "poller deadletter drop" in asked.text
    done = confirmed(browser, asked)
    assert "2 dead letters dropped" in done.text
    assert left(site) == 10
    assert disabled(site, ids) == {ids[1], ids[2]}
    form: dict[str, Any] = {"csrf_token": form_token(done.text)}
    form["letter"] = re.findall(r'name="letter" value="(\d+)"', done.text)
    back = browser.post("/letters/-/undo", data=form)
    assert "2 targets enabled again." in back.text
    assert disabled(site, ids) == set()
    assert changes(site) == ["target.edit", "dead_letter.drop"]


def test_a_large_drop_wants_the_number_typed(
    browser: Any, site: Site, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A requeue does not; a number that is no number is told."""
    monkeypatch.setattr(bulk_confirmation, "MANY", 2)
    page = browser.get("/letters").text
    form = {"where": "", "reason": "open_too_long"}
    asked = act(browser, page, "drop", **form)
    assert "Type 3 to go on" in asked.text
    for typed in ("", "4", "three"):
        refused = act(browser, page, "drop", **form, go="yes", confirm=typed)
        assert "Nothing was done" in refused.text
        assert left(site) == 12
    assert "Type " not in act(browser, page, "requeue", **form).text
    done = act(browser, page, "drop", **form, go="yes", confirm="3")
    assert "3 dead letters dropped" in done.text


def test_one_request_is_bounded(
    browser: Any, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More letters are for a narrower filter, or for the command."""
    monkeypatch.setattr(letter_plan, "MOST_LETTERS", 5)
    page = browser.get("/letters").text
    refused = act(browser, page, "drop", where="")
    assert refused.status_code == 422
    assert "one request takes 5 at most" in refused.text


@pytest.mark.parametrize(
    ("role", "shown"),
    [(Role.VIEWER, set()), (Role.OPERATOR, {"requeue", "drop"})],
)
def test_only_what_one_may_do_is_shown(
    site: Site, ids: list[int], role: Role, shown: set[str]
) -> None:
    """And the server refuses the rest."""
    site.user(role=role)
    browser = browser_of(site)
    log_in(browser)
    for view in ("cause", "letters"):
        page = browser.get("/letters", params={"view": view}).text
        assert set(re.findall(r'name="action" value="(\w+)"', page)) == shown
    for action in {"requeue", "drop"} - shown:
        refused = act(browser, page, action, reason="auth_failed", go="yes", confirm="9")
        assert refused.status_code == 403
    undone = {"csrf_token": form_token(page), "letter": str(ids[0])}
    allowed = browser.post("/letters/-/undo", data=undone).status_code
    assert allowed == (200 if "drop" in shown else 403)
    assert left(site) == 12


def test_a_token_of_one_site_sees_only_its_letters(site: Site, ids: list[int]) -> None:
    """In groups, one by one, in the file; another site's target is unknown to it."""
    header = site.token(Scope.READ, site="fra")
    browser = site.client(**header, accept="text/html")
    every = dead_letter_rows.Wanted(site="fra")
    own = {each.letter.target_id for each in dead_letter_rows.listing(site.services.engine, every)}
    assert 0 < len(own) < 12
    page = browser.get("/letters", params={"view": "letters"})
    assert {int(key) for key in keys(page.text)} == own
    assert f"{len(own)} dead letters" in browser.get("/letters").text
    assert len(browser.get("/letters/-/letters.csv").text.splitlines()) == len(own) + 1
    assert browser.get("/letters", params={"where": "site:ber"}).status_code in (403, 422)


def test_nobody_sees_them_without_a_login(site: Site, ids: list[int]) -> None:
    """A browser is led to the login."""
    site.user()
    answer = browser_of(site).get("/letters")
    assert answer.status_code in (302, 303, 401)
    assert "digest" not in answer.text


def changes(site: Site) -> list[str]:
    """The actions of the audit log, the newest first, without log-ins."""
    rows = audit_rows.listing(site.services.engine, AuditQuery("", "", "", 0, 50, None))
    return [row.action for row in rows if row.action.startswith(("dead_letter", "target"))]


def disabled(site: Site, ids: list[int]) -> set[int]:
    rows = targets.listing(site.services.engine, limit=None)
    return {row.id for row in rows if row.id in ids and not row.enabled}
