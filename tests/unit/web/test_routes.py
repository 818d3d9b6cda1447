"""The routes that programs use: probes, API, static files, and the headers of all responses."""

from __future__ import annotations

import dataclasses
import html
import re

import pytest
import web_overviews as fleet

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation import health
from poller.presentation.health import Stores
from poller.web.routes import SECURITY_HEADERS


def unreadable() -> Overview:
    raise errors.StoreUnavailable("cannot use Redis at 127.0.0.1:1/0", "ConnectionError")


def test_a_process_can_be_alive_and_not_ready(create_client) -> None:
    """The process answers although no store does."""
    client = create_client(unreadable, stores=Stores(sql_error="cannot use the database"))
    assert client.get("/healthz").json() == {"status": "ok"}
    response = client.get("/readyz")
    assert response.status_code == 503
    redis_error = "cannot use Redis at 127.0.0.1:1/0 (ConnectionError)"
    assert response.json() == {
        "status": "not ready",
        "sql": "cannot use the database",
        "redis": redis_error,
        "leader": "unknown",
        "level": "down",
        "verdict": f"Cannot read the board: {redis_error}. Cannot use the database.",
    }


FULL = "OutOfMemoryError: command not allowed when used memory > 'maxmemory'."


@pytest.mark.parametrize(
    ("overview", "stores", "status_code"),
    [
        (fleet.HEALTHY, Stores(), 200),
        (fleet.FAILING, Stores(), 200),
        (fleet.NO_LEADER, Stores(), 200),
        (fleet.EMPTY, Stores(), 200),
        (fleet.HEALTHY, Stores(write_error=FULL), 503),
        (fleet.HEALTHY, Stores(sql_error="the database has no tables yet"), 503),
        (fleet.EMPTY, Stores(sql_error="the database has no tables yet"), 503),
        (fleet.EMPTY, Stores(sql_targets=160), 200),
    ],
)
def test_page_api_and_readyz_have_one_verdict(
    create_client, overview: Overview, stores: Stores, status_code: int
) -> None:
    """All three show the sentence of `health.judge`; unusable stores make the process not ready.

    A missing leader does not: the page can be served, and is needed then.
    """
    client = create_client(overview, stores=stores)
    verdict = health.judge(overview, stores)
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["verdict"]) == (status_code, verdict.text)
    assert ready.json()["level"] == verdict.level
    shown = client.get("/api/overview").json()["health"]
    assert (shown["text"], shown["level"], shown["ready"]) == (
        verdict.text,
        verdict.level,
        status_code == 200,
    )
    assert html.escape(verdict.text, quote=False) in client.get("/").text.replace("&#39;", "'")
    assert (verdict.exit_code == 5) == (status_code == 503)


@pytest.mark.parametrize(
    ("overview", "leader"), [(fleet.HEALTHY, "present"), (fleet.NO_LEADER, "absent")]
)
def test_readyz_says_whether_there_is_a_leader(
    create_client, overview: Overview, leader: str
) -> None:
    """A missing leader is in the body; the process can serve without a leader."""
    response = create_client(overview).get("/readyz")
    assert response.status_code == 200
    body = response.json()
    assert (body["status"], body["sql"], body["redis"], body["leader"]) == (
        "ready",
        "ok",
        "ok",
        leader,
    )


def test_the_api_returns_the_overview(create_client) -> None:
    """The document has a schema, UTC instants, and units in the names of its fields."""
    response = create_client(fleet.FAILING).get("/api/overview").json()
    assert response["schema"] == "poller.overview/1"
    assert response["as_of"] == "2026-11-17T00:13:12Z"
    reasons = [
        "41 of 98,204 targets failing.",
        "12 need a person (dead letters).",
        "Polling is on time.",
        "2 targets are paused by hand.",
    ]
    assert response["health"] == {
        "state": "failing",
        "level": "attention",
        "text": " ".join(reasons),
        "reasons": reasons,
        "ready": True,
    }
    assert response["targets"]["states"] == {
        "ok": 98_100,
        "degraded": 3,
        "failing": 41,
        "unknown": 60,
    }
    assert response["board"] == {
        "due": 96_991,
        "overdue": 12,
        "long_overdue": 0,
        "in_flight": 1_213,
        "not_started": 0,
        "parked": 12,
        "held": 0,
    }
    assert response["breakers"] == {"open": 29, "opened_by_hand": 2}
    assert response["dead_letters"] == {"auth_failed": 9, "not_pollable": 3}
    assert response["lateness_last_5_min"] == {
        "polls": 490_912,
        "p50_s": 0.012,
        "p99_s": 0.086,
        "max_s": 1.24,
    }
    assert response["leader"] == {
        "name": "beat-1:4711",
        "epoch": 7,
        "since": "2026-11-16T22:01:01Z",
    }
    assert len(response["recent"]) == 83
    assert response["errors"][0]["device"] == "ap-0412.west"
    assert (response["workers"][0]["slots"], response["workers"][0]["last_poll"]) == (
        256,
        "2026-11-17T00:13:10Z",
    )
    assert response["workers"][0]["collectors"] == {
        "snmp": "poller 0.1.0",
        "routeros": "poller 0.1.0",
    }


def test_unmeasured_values_are_null_in_the_api(create_client) -> None:
    """Without a poll there is no lateness, and without a leader no name."""
    response = (
        create_client(dataclasses.replace(fleet.EMPTY, targets=1)).get("/api/overview").json()
    )
    assert response["lateness_last_5_min"] == {
        "polls": 0,
        "p50_s": None,
        "p99_s": None,
        "max_s": None,
    }
    assert response["leader"] is None


def test_the_api_names_a_store_that_does_not_answer(create_client) -> None:
    """A program gets no old numbers, because it cannot see their age."""
    response = create_client(unreadable).get("/api/overview")
    assert response.status_code == 503
    assert response.json() == {
        "error": {"message": "cannot use Redis at 127.0.0.1:1/0 (ConnectionError)"}
    }


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/metrics", "/api/overview", "/nowhere"]
)
def test_every_response_has_the_security_headers(create_client, path: str) -> None:
    """Also an error response. Only static files may be cached."""
    response = create_client(fleet.HEALTHY).get(path)
    assert {name: response.headers[name] for name in SECURITY_HEADERS} == SECURITY_HEADERS
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/api/overview", "/api/stream", "/metrics"])
def test_every_route_is_read_only(create_client, method: str, path: str) -> None:
    """Methods that change something are refused."""
    assert create_client(fleet.HEALTHY).request(method, path).status_code == 405


def test_static_files_are_cached_forever(create_client) -> None:
    """Every file of the page exists and has a media type; its name contains a hash."""
    client = create_client(fleet.HEALTHY)
    page = client.get("/").text
    paths = [
        word.split('"')[1]
        for word in page.split()
        if word.startswith(('href="static/', 'src="static/'))
    ]
    assert len(paths) == 3
    for path in paths:
        response = client.get(f"/{path}")
        assert response.status_code == 200
        assert response.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert response.headers["Content-Type"].split(";")[0] in (
            "text/css",
            "text/javascript",
            "image/svg+xml",
        )


@pytest.mark.parametrize(
    "path", ["style.css", "script/cells.js", "../app.py", "..%2fapp.py", "style-000000000000.css"]
)
def test_no_other_file_is_served(create_client, path: str) -> None:
    """Only the exact names exist; a path cannot leave the directory."""
    assert create_client(fleet.HEALTHY).get(f"/static/{path}").status_code == 404


def test_the_first_load_is_small(create_client) -> None:
    """Page, style sheet, script and icon take at most 60 KB, compressed."""
    client = create_client(fleet.FAILING)
    page = client.get("/")
    sizes = {"/": int(page.headers["Content-Length"])}
    for word in page.text.split():
        if word.startswith(('href="static/', 'src="static/')):
            path = "/" + word.split('"')[1]
            sizes[path] = int(client.get(path).headers["Content-Length"])
    assert page.headers["Content-Encoding"] == "gzip"
    assert len(sizes) <= 5  # the stream is the sixth request
    assert sum(sizes.values()) <= 60_000
    assert sizes["/"] <= 20_000
    assert max(size for path, size in sizes.items() if path.endswith((".css", ".js"))) <= 12_000


def test_the_api_gives_the_reason_for_an_unserved_queue(create_client) -> None:
    """The reason is that of the page and of the command line."""
    lab, acme = reversed(create_client(fleet.UNROUTABLE).get("/api/overview").json()["unserved"])
    reason = "needs tag zone=lab; 5 workers live, none has it"
    assert lab == {"name": "poll.snmp;zone=lab", "targets": 312, "reason": reason}
    assert acme["reason"].endswith(
        "the nearest, celery@poll-1, lacks collector acme-olt and tag zone=dmz"
    )


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:8080", 200), ("[::1]:8080", 200), ("localhost", 200), ("evil.example:8080", 421)],
)
@pytest.mark.parametrize("path", ["/", "/healthz", "/api/overview", "/metrics"])
def test_a_foreign_host_header_is_refused(create_client, path: str, host: str, status: int) -> None:
    """A site that lets its name point to this machine gets nothing, on any path."""
    response = create_client(fleet.HEALTHY).get(path, headers={"Host": host})
    assert response.status_code == status
    if status != 200:
        assert response.text == (
            "evil.example is not a name of this service. Add it to POLLER_WEB_HOSTS to use it.\n"
        )
        assert response.headers["Content-Security-Policy"]


def test_every_place_of_the_board_has_a_row(create_client) -> None:
    """Due, in flight, parked and held, each with its number."""
    board = dataclasses.replace(fleet.FAILING, due=5, in_flight=6, parked=7, held=8)
    page = create_client(board).get("/").text
    for place, number in (("due", 5), ("flight", 6), ("parked", 7), ("held", 8)):
        assert re.search(rf'data-cell="place-{place}"[^>]*>{number}<', page), place


@pytest.mark.parametrize("path", ["/", "/jobs", "/collectors"])
def test_a_page_links_to_the_versioned_api(create_client, path: str) -> None:
    """The JSON of the page and the description of the API; no address without a version."""
    page = create_client(fleet.FAILING).get(path).text
    assert 'href="api/v1/openapi.json"' in page
    links = re.findall(r'href="(api/[^"]*)"', page)
    assert all(link.startswith("api/v1/") for link in links), links
