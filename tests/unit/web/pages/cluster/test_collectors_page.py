"""The collectors page and its API: installed collectors, their workers, and unusable ones."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
import web_clients
import web_collectors

from poller import errors
from poller.db.record.slow_targets import SlowTarget
from poller.domain.metrics.poll_totals import PollTotals, Time
from poller.domain.record.collector_day import AllFigures, CollectorFigures
from poller.service.cluster.collector_figures import SlowTargets
from poller.web.pages.cluster import collectors_page
from poller.web.pages.cluster.collectors_page import CollectorsStatus, default_text


def client(status: CollectorsStatus = web_collectors.STATUS) -> web_clients.TestClient:
    return web_clients.create(collectors=lambda: status)


def with_figures() -> CollectorsStatus:
    """1,200 devices are polled by SNMP; of 1,000 polls 50 failed, most after a second or more."""
    totals = PollTotals(
        outcomes=Counter(ok=900, partial=50, failed=50),
        codes=Counter(timeout=40, auth_failed=6, protocol=3, unreachable=1),
    )
    totals.times[Time.DURATION].buckets.update({2: 1_000, 6: 80, 7: 20})
    figures = AllFigures(
        web_collectors.NOW,
        web_collectors.NOW - collectors_page.DAY_MS,
        {"snmp": CollectorFigures(1_200, 2_400, totals)},
    )
    return dataclasses.replace(web_collectors.STATUS, figures=figures)


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


def test_the_page_shows_state_and_workers() -> None:
    """A quarantined collector has its reason, and leads to its own page."""
    html = client().get("/collectors").text
    assert "quarantined" in html
    assert "it ended its process" in html
    assert "2 of 2" in html
    assert 'href="collectors/snmp"' in html


def test_what_is_held_back_comes_first() -> None:
    """With a button and the command that release it; what is well has none."""
    html = client().get("/collectors").text
    assert html.index("Held back") < html.index("Cannot be used") < html.index("Installed")
    assert 'action="collectors/routeros/release"' in html
    assert "poller collectors release routeros" in html
    assert "collectors/snmp/release" not in html
    assert "ImportError: no vendor library" in html
    assert "worker2@b" in html


def test_the_figures_lead_to_the_devices() -> None:
    """Of those who use a collector, and of those that fail with a code."""
    html = client(with_figures()).get("/collectors").text
    assert 'href="devices?where=collector%3Asnmp">1,200</a>' in html
    assert 'href="devices?where=collector%3Asnmp%20code%3Atimeout">timeout</a> 40' in html
    row = collectors_page.figures_of("snmp", with_figures().figures)
    assert (row.polls, row.success, row.tone) == ("1,000", "95.00 %", "late")
    assert (row.p50, row.p95, row.p99) == ("77.5 ms", "1.84 s", "3.62 s")
    assert ([each.code for each in row.codes], row.more_codes) == (
        ["timeout", "auth_failed", "protocol"],
        1,
    )


def test_the_span_of_the_polls_is_said() -> None:
    """A new cluster has not counted for a day yet."""
    day = collectors_page.DAY_MS
    whole = AllFigures(as_of_ms=2 * day, since_ms=day)
    assert collectors_page.span_text(whole) == "polls of the last day"
    young = AllFigures(as_of_ms=2 * day, since_ms=2 * day - 600_000)
    assert collectors_page.span_text(young) == "polls since 1970-01-02 23:50 UTC"


def test_a_collector_that_only_workers_have_is_listed() -> None:
    """And one that nothing has, if a target names it."""
    figures = {"snmp": CollectorFigures(1, 1), "dsl": CollectorFigures(2, 3)}
    status = dataclasses.replace(with_figures(), figures=AllFigures(by_collector=figures))
    worker = web_collectors.worker("w3@c", collectors={"dsl": "acme-dsl 1.0"})
    on_worker = dataclasses.replace(status, workers=[*status.workers, worker])
    rows = {row.name: row for row in collectors_page.build_view(on_worker, 0).rows}
    assert (rows["dsl"].origin, rows["dsl"].workers) == ("acme-dsl 1.0", "1 of 3")
    assert rows["dsl"].note.startswith("only workers have it")
    lost = {row.name: row for row in collectors_page.build_view(status, 0).rows}
    assert lost["dsl"].note == "targets name it, and nothing that runs has it"


def test_the_page_of_one_collector() -> None:
    """Its errors with what to do, its slowest targets, its versions and options."""
    rows = [SlowTarget("sw-1", "snmp", 1_440, 40, 900, 5_000)]
    site = web_clients.create(
        collectors=with_figures, slow_targets=lambda _name: SlowTargets(rows, 86_400_000)
    )
    html = site.get("/collectors/snmp").text
    for text in (
        "no complete response before the deadline",
        "of 1970-01-02, by the 95th percentile",
        'href="../devices/sw-1">sw-1/snmp</a>',
        "900 ms",
        "(this poller serves 1)",
        "Options of snmp",
        "UDP port of the agent",
        "poller collectors stats snmp",
    ):
        assert text.lower() in html.lower(), text
    held = site.get("/collectors/routeros").text
    assert "Held back" in held
    assert "None of these polls was by this collector" in client().get("/collectors/snmp").text
    unknown = site.get("/collectors/snpm", headers={"accept": "text/html"})
    assert unknown.status_code == 404
    assert "Did you mean snmp?" in unknown.text


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
