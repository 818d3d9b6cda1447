"""The page of workers: what is without a worker, the load of domains, and odd workers."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter

import web_overviews as fleet

from poller import errors
from poller.domain.metrics import histogram
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.domain.scheduling.worker_drain import Drain
from poller.web.pages.cluster import workers_page

QUEUES = ["poll.routeros", "poll.snmp", "poll.snmp;site=ams"]
TIMES = {
    "poll.snmp": QueueTimes(
        slot_ms=96_000, waits=Counter({histogram.bucket(20): 90, histogram.bucket(4_000): 10})
    )
}


def busy(**changes: object) -> Overview:
    """A fleet whose workers say what they serve and which release they are."""
    workers = [
        dataclasses.replace(each, queues=QUEUES, version="1.0.0", slots=16)
        for each in fleet.HEALTHY.workers
    ]
    return dataclasses.replace(fleet.HEALTHY, workers=workers, **changes)  # type: ignore[arg-type]


def test_a_domain_shows_its_share_of_the_worker_seconds() -> None:
    """Four workers of 16 slots have 3,840 worker-seconds in a minute."""
    view = workers_page.build_view(busy(), TIMES)
    row = next(row for row in view.domains if row.queue == "poll.snmp")
    assert (row.used, row.maximum, row.share) == ("96", "3840", "2 %")
    assert (row.wait_p50, row.workers) == ("21 ms", "4")
    assert row.wait_p95.startswith("4.")
    assert (row.state, row.where) == ("keeps up", "collector:snmp")
    unmeasured = next(row for row in view.domains if row.queue == "poll.routeros")
    assert (unmeasured.wait_p50, unmeasured.share) == ("–", "0 %")


def test_targets_without_a_worker_come_first(create_client) -> None:
    """In red, above the domains, with the reason and a link to the devices of the collector."""
    html = create_client(fleet.UNROUTABLE).get("/workers").text
    assert html.index("Targets without any worker") < html.index("Domains <button")
    assert "poll.acme-olt;site=ams;zone=dmz" in html
    assert 'href="devices?where=collector%3Aacme-olt"' in html
    assert "Targets without any worker" not in create_client(busy()).get("/workers").text


def test_a_worker_of_another_release_is_marked() -> None:
    """With a glyph and a word. A worker that tells no release is not."""
    overview = busy()
    first, second, *others = overview.workers
    mixed = [
        dataclasses.replace(first, version="0.9.0"),
        dataclasses.replace(second, version=""),
        *others,
    ]
    view = workers_page.build_view(dataclasses.replace(overview, workers=mixed), {})
    versions = {row.name: (row.version, row.is_odd) for row in view.workers}
    assert versions == {
        "celery@poll-1": ("▲ 0.9.0 differs", True),
        "celery@poll-2": ("?", False),
        "celery@poll-3": ("1.0.0", False),
        "celery@poll-4": ("1.0.0", False),
    }


def test_workers_in_trouble_come_first() -> None:
    """A lost one, then one that a store holds up; the others by name."""
    overview = busy()
    first, second, third, fourth = overview.workers
    troubled = [
        first,
        second,
        dataclasses.replace(third, store_error="cannot use the database"),
        dataclasses.replace(fourth, seen_ms=fleet.NOW_MS - 20_000),
    ]
    view = workers_page.build_view(dataclasses.replace(overview, workers=troubled), {})
    assert [(row.name, row.state) for row in view.workers] == [
        ("celery@poll-4", "lost"),
        ("celery@poll-3", "held up"),
        ("celery@poll-1", "running"),
        ("celery@poll-2", "running"),
    ]
    assert (view.running, view.lost) == ("3 workers running", "1 lost")
    assert view.workers[1].note == "cannot use the database"
    assert view.workers[2].domains == "routeros, snmp, snmp;site=ams"


def test_the_page_without_workers_says_how_to_start_one(create_client) -> None:
    """A first run has neither workers nor domains."""
    html = create_client(fleet.EMPTY).get("/workers").text
    assert "No worker runs, so nothing is polled." in html
    assert "No domain yet" in html


def test_the_page_without_redis_says_so(create_client) -> None:
    """The page of an error, not numbers of a board that cannot be read."""

    def unreadable() -> Overview:
        raise errors.StoreUnavailable("cannot use Redis at 127.0.0.1:1/0")

    response = create_client(unreadable).get("/workers", headers={"Accept": "text/html"})
    assert response.status_code == 503
    assert "cannot use Redis" in response.text


def test_texts_of_workers_are_escaped(create_client) -> None:
    """A name or tag of a worker is no HTML."""
    html = create_client(fleet.HOSTILE).get("/workers").text
    assert fleet.SCRIPT not in html
    assert len(re.findall("&lt;script&gt;", html)) > 2


def test_a_drained_worker_says_who_why_and_what_is_left() -> None:
    """Its command ends the drain; that of another one begins it."""
    first, second, *others = busy().workers
    drain = Drain(fleet.NOW_MS - 1, fleet.NOW_MS + 3_600_000, "kim", "new kernel")
    done = dataclasses.replace(first, drain=drain, queues=())
    busier = dataclasses.replace(second, drain=drain, unfinished=3)
    overview = dataclasses.replace(busy(), workers=[done, busier, *others])
    view = workers_page.build_view(overview, {})
    rows = {row.own_name: row for row in view.workers}
    assert view.drained == "2 of them drained"
    name = "celery@poll-1"
    assert (rows[name].state, rows[name].command) == ("drained", f"poller workers resume {name}")
    assert rows[name].note == "by kim until 2026-11-17 01:13 UTC: new kernel"
    assert rows["celery@poll-2"].state == "draining"
    assert rows["celery@poll-2"].note.endswith("; 3 batches left")
    assert rows["celery@poll-3"].command == "poller workers drain celery@poll-3"


def test_what_was_asked_for_is_told_with_the_way_back() -> None:
    """An unknown word tells nothing; of many workers there is no command."""
    one = workers_page.told("drain", ["w1@a"], 1)
    assert one is not None
    assert one.command == "poller workers resume w1@a"
    many = workers_page.told("resume", ["w1@a"], 12)
    assert many is not None
    assert (many.text[:11], many.command) == ("12 workers:", "")
    assert workers_page.told("explode", ["w1@a"], 1) is None
