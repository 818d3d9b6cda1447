"""The overview page as texts, tones and rows by cell."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.record.overview import Point
from poller.presentation.health import Stores
from poller.web.pages.fleet import overview_page, overview_tables


def test_a_healthy_fleet_has_no_coloured_number() -> None:
    """Only the glyphs have a colour."""
    tones = overview_page.build_view(fleet.HEALTHY).tones
    assert tones == {"glyph": "ok", "mark-ok": "ok"}


def test_bad_numbers_are_coloured() -> None:
    """Failing targets, dead letters and a lost worker have a tone."""
    lost = fleet.worker(1, seen_ms=fleet.NOW_MS - 61_000)
    view = overview_page.build_view(
        dataclasses.replace(fleet.FAILING, workers=(lost, fleet.worker(2)))
    )
    assert (view.tones["failing"], view.tones["letters"]) == ("failing", "late")
    assert view.tones["workers/celery@poll-1/seen"] == "failing"
    assert view.texts["workers/celery@poll-1/seen"] == "■ 1 m 1 s"
    assert "workers/celery@poll-2/seen" not in view.tones


def test_the_number_of_firing_alerts_has_the_tone_of_the_worst() -> None:
    """What something covers is named apart; without SQL the number is not known."""
    unknown = overview_page.build_view(fleet.HEALTHY)
    assert unknown.texts["alerts"] == "–"
    severities = {"critical": 1, "warning": 2}
    numbers = AlertNumbers(firing=3, suppressed=1_998, by_severity=severities)
    view = overview_page.build_view(fleet.HEALTHY, Stores(alerts=numbers))
    assert (view.texts["alerts"], view.tones["alerts"]) == ("3", "failing")
    assert view.texts["alerts-others"] == "1 critical, 1,998 covered"
    quiet = AlertNumbers(firing=1, by_severity={"info": 1})
    assert "alerts" not in overview_page.build_view(fleet.HEALTHY, Stores(alerts=quiet)).tones


def test_a_long_table_counts_the_rows_that_are_not_shown() -> None:
    """The workers have a limit, and the queues show the busiest."""
    workers = tuple(fleet.worker(n) for n in range(overview_tables.WORKERS.limit + 14))
    loads = tuple(fleet.load(f"poll.q{n}", waiting=n) for n in range(30))
    view = overview_page.build_view(
        dataclasses.replace(fleet.HEALTHY, workers=workers, loads=loads)
    )
    assert len(view.rows["workers"]) == overview_tables.WORKERS.limit
    assert view.texts["workers-more"] == "14 more, not shown"
    assert view.texts["queues-more"] == "22 more, not shown"
    assert set(view.rows["queues"]) == {f"poll.q{n}" for n in range(22, 30)}


def test_a_queue_with_too_few_workers_shows_the_shortage() -> None:
    """The shortage is text beside the number, in the colour of lateness."""
    view = overview_page.build_view(fleet.LATE)
    assert view.texts["queues/poll.snmp/workers"] == "▲ 4, needs 2.3 times as many"
    assert view.tones["queues/poll.snmp/workers"] == "late"
    stuck = dataclasses.replace(fleet.HEALTHY, loads=(fleet.load("poll.x", shortage=None),))
    assert (
        overview_page.build_view(stuck).texts["queues/poll.x/workers"] == "▲ 4, nothing is polled"
    )
    assert "queues/poll.snmp/workers" not in overview_page.build_view(fleet.HEALTHY).tones


def test_the_causes_of_the_last_errors_are_counted() -> None:
    """The codes are listed, the most frequent first."""
    text = overview_page.build_view(fleet.FAILING).texts["causes"]
    assert text == "By cause, of the last 20: timeout 10 · auth_failed 5 · unreachable 5"


def test_two_errors_of_one_target_in_one_millisecond_are_one_row() -> None:
    """The key of a row is unique in its table."""
    view = overview_page.build_view(
        dataclasses.replace(fleet.FAILING, errors=(fleet.failure(1), fleet.failure(1)))
    )
    assert len(view.rows["errors"]) == 1


def test_an_idle_fleet_has_no_lateness() -> None:
    """A slice without a poll has a throughput of zero, and no lateness."""
    idle = tuple(
        Point(fleet.NEWEST_MS - n * fleet.SLICE_MS, 10.0, 0, 0, 0.0) for n in reversed(range(90))
    )
    view = overview_page.build_view(
        dataclasses.replace(fleet.HEALTHY, recent=idle, lateness=fleet.EMPTY.lateness)
    )
    assert 'class="line polls"' in view.plots["polls"]
    assert 'class="line lateness"' not in view.plots["lateness"]
    assert "nothing was measured" in view.plots["lateness"]
    assert view.texts["p99"] == "–"


def test_a_missing_counter_is_a_dash() -> None:
    """Missed slots are not shown as 0 while the board has no count of them."""
    assert (
        overview_page.build_view(dataclasses.replace(fleet.HEALTHY, totals={"polls": 1})).texts[
            "missed"
        ]
        == "–"
    )


def test_old_numbers_are_marked_as_old() -> None:
    """When the board cannot be read, the sentence says so and gives the time of the numbers."""
    stores = Stores(redis_error="cannot use Redis at 127.0.0.1:6379/0")
    view = overview_page.build_view(fleet.HEALTHY, stores)
    assert view.texts["health"].startswith(
        "Cannot read the board: cannot use Redis at 127.0.0.1:6379/0."
    )
    assert "00:13:12 UTC" in view.texts["health"]
    assert view.tones["health"] == "failing"
