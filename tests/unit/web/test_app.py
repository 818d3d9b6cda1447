"""The routes as other programs use them: probes, metrics' neighbours, API, static files, headers."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.headers import HEADERS


def unreadable() -> Overview:
    raise errors.StoreUnavailable("cannot use Redis at 127.0.0.1:1/0", "ConnectionError")


def test_alive_is_not_ready(ask) -> None:
    """The process answers although nothing behind it does."""
    client = ask(unreadable, ready={"sql": "cannot use the database", "redis": "cannot use Redis"})
    assert client.get("/healthz").json() == {"status": "ok"}
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not ready",
        "sql": "cannot use the database",
        "redis": "cannot use Redis",
        "leader": "unknown",
    }


@pytest.mark.parametrize(
    ("overview", "leader"), [(fleet.HEALTHY, "present"), (fleet.NO_LEADER, "absent")]
)
def test_ready_says_whether_somebody_leads(ask, overview: Overview, leader: str) -> None:
    """A missing leader is told, but this process can serve without one."""
    answer = ask(overview).get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "sql": "ok", "redis": "ok", "leader": leader}


def test_the_api_tells_the_same_story(ask) -> None:
    """One document, with its schema, UTC instants and units in the names."""
    answer = ask(fleet.FAILING).get("/api/overview").json()
    assert answer["schema"] == "poller.overview/1"
    assert answer["as_of"] == "2026-11-17T00:13:12Z"
    assert answer["health"] == {
        "state": "failing",
        "text": "41 of 98,204 targets failing. 12 need a person (poller deadletter list). Polling is on time.",
    }
    assert answer["targets"]["states"] == {
        "ok": 98_100,
        "degraded": 3,
        "failing": 41,
        "unknown": 60,
    }
    assert answer["board"] == {
        "due": 96_991,
        "overdue": 12,
        "long_overdue": 0,
        "in_flight": 1_213,
        "parked": 12,
        "held": 0,
    }
    assert answer["breakers"] == {"open": 29, "opened_by_hand": 2}
    assert answer["dead_letters"] == {"auth_failed": 9, "not_pollable": 3}
    assert answer["lateness_last_5_min"] == {
        "polls": 490_912,
        "p50_s": 0.012,
        "p99_s": 0.086,
        "max_s": 1.24,
    }
    assert answer["leader"] == {"name": "beat-1:4711", "epoch": 7, "since": "2026-11-16T22:01:01Z"}
    assert len(answer["recent"]) == 83
    assert answer["errors"][0]["device"] == "ap-0412.west"
    assert (answer["workers"][0]["slots"], answer["workers"][0]["last_poll"]) == (
        256,
        "2026-11-17T00:13:10Z",
    )
    assert answer["workers"][0]["collectors"] == {
        "snmp": "poller 0.1.0",
        "routeros": "poller 0.1.0",
    }


def test_the_api_does_not_invent_what_was_not_measured(ask) -> None:
    """No poll, no lateness; no leader, no name."""
    answer = ask(dataclasses.replace(fleet.EMPTY, targets=1)).get("/api/overview").json()
    assert answer["lateness_last_5_min"] == {
        "polls": 0,
        "p50_s": None,
        "p99_s": None,
        "max_s": None,
    }
    assert answer["leader"] is None


def test_the_api_names_what_does_not_answer(ask) -> None:
    """Old numbers are not handed to programs that cannot see that they are old."""
    answer = ask(unreadable).get("/api/overview")
    assert answer.status_code == 503
    assert answer.json() == {
        "error": {"message": "cannot use Redis at 127.0.0.1:1/0 (ConnectionError)"}
    }


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/readyz", "/metrics", "/api/overview", "/nowhere"]
)
def test_every_answer_is_guarded(ask, path: str) -> None:
    """All headers on all answers, the wrong ones too, and no answer but a static one is kept."""
    answer = ask(fleet.HEALTHY).get(path)
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", "/api/overview", "/api/stream", "/metrics"])
def test_nothing_but_reading_is_possible(ask, method: str, path: str) -> None:
    """There is no way to change anything through this door."""
    assert ask(fleet.HEALTHY).request(method, path).status_code == 405


def test_files_may_be_kept_for_ever_under_names_that_change(ask) -> None:
    """Whatever the page asks for exists, is typed, and is named by its content."""
    client = ask(fleet.HEALTHY)
    html = client.get("/").text
    paths = [
        word.split('"')[1]
        for word in html.split()
        if word.startswith(('href="static/', 'src="static/'))
    ]
    assert len(paths) == 3
    for path in paths:
        answer = client.get(f"/{path}")
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["Content-Type"].split(";")[0] in (
            "text/css",
            "text/javascript",
            "image/svg+xml",
        )


@pytest.mark.parametrize(
    "path", ["overview.css", "../app.py", "..%2fapp.py", "overview-000000000000.css"]
)
def test_no_other_file_is_served(ask, path: str) -> None:
    """Only the exact names exist; there is no directory to climb."""
    assert ask(fleet.HEALTHY).get(f"/static/{path}").status_code == 404


def test_the_first_load_is_light(ask) -> None:
    """At most 60 KB on the wire in at most 6 requests: page, style, script, mark."""
    client = ask(fleet.FAILING)
    page = client.get("/")
    sizes = {"/": int(page.headers["Content-Length"])}
    for word in page.text.split():
        if word.startswith(('href="static/', 'src="static/')):
            path = "/" + word.split('"')[1]
            sizes[path] = int(client.get(path).headers["Content-Length"])
    assert page.headers["Content-Encoding"] == "gzip"
    assert len(sizes) <= 5  # and the stream
    assert sum(sizes.values()) <= 60_000
    assert sizes["/"] <= 20_000
    assert max(size for path, size in sizes.items() if path.endswith((".css", ".js"))) <= 12_000


def test_the_api_says_why_a_queue_has_no_worker(ask) -> None:
    """In the words of the page and the command line."""
    lab, acme = reversed(ask(fleet.UNROUTABLE).get("/api/overview").json()["unserved"])
    reason = "needs tag zone=lab; 5 workers live, none has it"
    assert lab == {"name": "poll.snmp;zone=lab", "targets": 312, "reason": reason}
    assert acme["reason"].endswith(
        "the nearest, celery@poll-1, lacks collector acme-olt and tag zone=dmz"
    )
