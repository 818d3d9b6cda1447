"""The page of the audit log on real stores: sentences, filters, pages, and a file."""

from __future__ import annotations

import csv
import gzip
import hashlib
import html
import io
import re
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.access.scopes import Role
from tests.integration.access_sites import Site, browser_of

LEE = Actor("lee", ActorKind.TOKEN, "192.0.2.9")
AT_MS = 1_790_000_000_000  # 2026-09-21T14:13:20Z
HOUR_MS = 3_600_000
SECRET = "planted-hunter22"


@pytest.fixture
def browser(services: Services) -> Any:
    return browser_of(Site(services), Role.ADMIN)


def record(services: Services, *entries: AuditEntry, at_ms: int = AT_MS) -> None:
    with sql.writing(services.engine) as conn:
        audit_rows.append(conn, LEE, entries, at_ms)


def sentences(page: str) -> list[str]:
    """Each row as it reads, without its details."""
    rows = re.findall(r'<td class="happened">(.*?)<details>', page, re.S)
    return [html.unescape(re.sub(r"<[^>]*>|\s+", " ", row)).strip() for row in rows]


def words(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_a_row_is_a_sentence_with_before_and_after(browser: Any, services: Services) -> None:
    """Secrets were masked when the row was stored."""
    before = {"address": "192.0.2.1", "password": SECRET}
    after = {"address": "192.0.2.2", "url": f"https://x:{SECRET}@h/"}
    record(services, AuditEntry("device.edit", "sw1", before, after))
    page = browser.get("/audit?actor=lee").text
    [sentence] = sentences(page)
    assert words(sentence).startswith("lee changed device sw1 : address: 192.0.2.1 → 192.0.2.2")
    assert "<del>192.0.2.1</del> → <ins>192.0.2.2</ins>" in page
    assert "192.0.2.9" in page
    assert SECRET not in page
    assert SECRET not in browser.get("/audit/-/audit.csv").text


def test_filters_narrow_and_links_keep_them(browser: Any, services: Services) -> None:
    """Actor, action, subject and time; the command does the same."""
    record(services, AuditEntry("device.remove", "sw1"), at_ms=AT_MS)
    record(services, AuditEntry("device.remove", "sw2"), at_ms=AT_MS + HOUR_MS)
    record(services, AuditEntry("site.remove", "fra"), at_ms=AT_MS + 2 * HOUR_MS)
    for query, expected in (
        ("actor=lee", ["removed site fra", "removed device sw2", "removed device sw1"]),
        ("action=device.remove", ["removed device sw2", "removed device sw1"]),
        ("subject=sw2", ["removed device sw2"]),
        ("until=2026-09-21T15:13:20Z&actor=lee", ["removed device sw1"]),
        (
            "since=2026-09-21T15:00:00Z&until=2026-09-21T16:00:00Z",
            ["removed device sw2"],
        ),
        ("subject=nobody", []),
    ):
        page = browser.get(f"/audit?{query}").text
        assert [words(each).removeprefix("lee ") for each in sentences(page)] == expected, query
    page = browser.get("/audit?actor=lee&since=2026-09-21").text
    assert "<code>poller audit --actor lee --since 2026-09-21</code>" in page
    assert 'href="audit?actor=lee&amp;action=site.remove&amp;since=2026-09-21"' in page
    assert '<option value="device.remove">' in page


def test_a_time_that_cannot_be_read_keeps_its_text(browser: Any) -> None:
    """The page says what is wrong, and shows no rows of another time."""
    refused = browser.get("/audit?since=yesterday")
    assert refused.status_code == 422
    assert 'value="yesterday"' in refused.text
    assert "is not a duration" in refused.text
    assert 'data-table="audit"' not in refused.text
    assert browser.get("/audit/-/audit.csv?since=yesterday").status_code == 422
    assert browser.get("/audit?before=x").status_code == 422


def test_pages_follow_each_other_and_the_file_has_all(browser: Any, services: Services) -> None:
    """No row is missed or doubled; cells that a spreadsheet would calculate are texts."""
    names = [f"sw{number:03}" for number in range(119)] + ["=1+1"]
    record(services, *(AuditEntry("device.add", name, after={"n": 1}) for name in names))
    found: list[str] = []
    address = "/audit?actor=lee"
    while address:
        page = browser.get(address).text
        found += [words(each).removeprefix("lee added device ") for each in sentences(page)]
        following = re.search(r'href="([^"]*)" rel="next"', page)
        address = "/" + html.unescape(following[1]) if following else ""
    assert [each.partition(" ")[0] for each in found] == names[::-1]

    sent = browser.get("/audit/-/audit.csv?actor=lee")
    assert sent.headers["content-disposition"] == 'attachment; filename="audit.csv"'
    rows = list(csv.DictReader(io.StringIO(sent.text)))
    assert [row["subject"] for row in rows] == ["'=1+1", *names[:-1][::-1]]
    assert (rows[0]["actor"], rows[0]["at"], rows[0]["after"]) == (
        "lee",
        "2026-09-21T14:13:20Z",
        '{"n": 1}',
    )


def test_long_documents_keep_the_page_small(browser: Any, services: Services) -> None:
    """Fifty different rows with many names each are cut to 20 KB; the file has the whole."""
    entries = []
    for row in range(50):
        before = [f"{hashlib.sha256(f'{row} {n}'.encode()).hexdigest()[:20]}" for n in range(400)]
        last = {"names": [*before[1:], f"last-of-{row}"]}
        entries.append(AuditEntry("device.edit", f"site:s{row}", {"names": before}, last, 400))
    record(services, *entries)
    page = browser.get("/audit?actor=lee").text
    assert page.count('class="happened"') == 50
    assert len(gzip.compress(page.encode(), 4)) <= 20_000
    assert "last-of-7" not in page
    assert "last-of-7" in browser.get("/audit/-/audit.csv").text
