"""Dead letters as texts: the names of groups, the links to their letters, and their commands."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from poller.domain.inventory import target_filter
from poller.service.operations.letter_actions import LetterPage, LetterQuery
from poller.service.operations.letter_overview import LetterOverview
from poller.service.operations.shown_letters import ShownGroup
from poller.web.pages.work import letters_page, letters_query
from poller.web.pages.work.letters_query import LettersQuery, View

AT = datetime(2026, 11, 19, 6, 0, tzinfo=UTC)


def group(**changes: object) -> ShownGroup:
    fields: dict[str, object] = {
        "reason": "auth_failed",
        "error_code": "auth_failed",
        "category": "auth",
        "collector": "snmp",
        "site": "",
        "device": "",
        "message": "wrong digest",
        "texts": 1,
        "letters": 1_200,
        "devices": 1_100,
        "sites": 1,
        "first_failure": AT,
        "last_failure": AT,
        "first_seconds": 7_200,
        "last_seconds": 1,
        "oldest_seconds": 7_200,
        "arrived_last_hour": 3,
    }
    return ShownGroup(**{**fields, **changes})  # type: ignore[arg-type]


def view(query: LettersQuery, *groups: ShownGroup) -> letters_page.LettersView:
    every = group(reason="", error_code="", collector="") if groups else None
    return letters_page.build_view(query, query.wanted, LetterOverview(every, groups), 0)


def test_a_group_says_how_many_and_what_they_touch() -> None:
    """Numbers with their digits, ages in words."""
    [row] = view(LettersQuery(), group(texts=4)).groups
    assert (row.title, row.note) == ("auth failed", "auth_failed · snmp")
    assert (row.number, row.touched) == ("1,200", "1,100 devices, 1 site")
    assert (row.others, row.arriving, row.oldest) == ("and 3 other texts", "3 /h", "2 h 0 m")
    assert row.first == "2026-11-19T06:00:00Z"


@pytest.mark.parametrize(
    ("kind", "shared", "where", "reason"),
    [
        (View.CAUSE, {}, "tag:core collector:snmp code:auth_failed", "auth_failed"),
        (View.COLLECTOR, {"reason": ""}, "tag:core collector:snmp", ""),
        (View.SITE, {"reason": "", "site": "a b"}, "site:'a b' tag:core", ""),
        (View.SITE, {"reason": "", "site": ""}, "site:'' tag:core", ""),
        (View.DEVICE, {"reason": "", "device": "sw1"}, "tag:core name:sw1", ""),
    ],
)
def test_a_group_leads_to_its_letters_only(
    kind: View, shared: dict[str, str], where: str, reason: str
) -> None:
    """What was searched for stays, and what the group shares is added."""
    [row] = view(LettersQuery("tag:core", view=kind), group(**shared)).groups
    assert (target_filter.text(row.query.wanted), row.query.reason) == (where, reason)
    assert row.where == where
    assert "view=letters" in row.url
    assert row.query.message == ""


def test_a_group_of_one_text_has_that_text() -> None:
    """As it is, in the link and in the command."""
    [row] = view(LettersQuery(view=View.TEXT), group(message="it's 'wrong'")).groups
    assert row.query.message == "it's 'wrong'"
    assert "message=it%27s+%27wrong%27" in row.url
    assert row.command.endswith("""--message 'it'"'"'s '"'"'wrong'"'"''""")


@pytest.mark.parametrize(
    ("query", "verb", "command"),
    [
        (LetterQuery(), "list", "poller deadletter list"),
        (LetterQuery(), "drop", "poller deadletter drop --all"),
        (
            LetterQuery("auth_failed", target_filter.parse("site:fra")),
            "requeue",
            "poller deadletter requeue --reason auth_failed --where site:fra",
        ),
        (
            LetterQuery(named=[("sw 1", "snmp"), ("sw2", "ping")]),
            "drop",
            "poller deadletter drop 'sw 1/snmp' sw2/ping",
        ),
    ],
)
def test_the_command_selects_the_same(query: LetterQuery, verb: str, command: str) -> None:
    """All are meant only where the command says so."""
    assert letters_query.command(verb, query) == command


def test_the_grouping_is_in_the_command_of_the_list() -> None:
    """Unless it is that of the command anyway."""
    assert view(LettersQuery(view=View.SITE)).command == "poller deadletter list --group site"
    assert view(LettersQuery()).command == "poller deadletter list"
    assert view(LettersQuery(view=View.LETTERS)).command == "poller deadletter list"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (LettersQuery(), "none needs a person"),
        (LettersQuery(where="site:fra"), "No dead letter matches."),
        (LettersQuery(after="x"), "There are no more."),
    ],
)
def test_an_empty_page_says_why(query: LettersQuery, words: str) -> None:
    """It has no sum and no group."""
    found = LetterOverview(letters=LetterPage((), None))
    shown = letters_page.build_view(query, target_filter.ANY, found, 0)
    assert words in shown.empty
    assert (shown.summary, shown.total) == ("", 0)


def test_the_address_is_the_state_of_the_view() -> None:
    """Defaults are left out, and every change goes back to the first page."""
    assert LettersQuery().url() == "letters"
    query = LettersQuery("site:fra", "auth_failed", "no", View.TEXT, "cursor")
    assert query.url() == "letters?where=site%3Afra&reason=auth_failed&message=no&view=text"
    assert query.url(view=View.CAUSE, message="") == "letters?where=site%3Afra&reason=auth_failed"
    assert query.url(after="next").endswith("&after=next")
