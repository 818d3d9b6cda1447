"""The overview page as texts, tones and rows by cell."""

from __future__ import annotations

import dataclasses
from collections import Counter

import web_overviews as fleet

from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import SiteSummary
from poller.domain.fleet.poll_ages import PollAges
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Point
from poller.presentation.health import Stores
from poller.service.fleet.age_picture import AgePicture
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.pages.fleet import overview_page, overview_tables


def test_a_healthy_fleet_has_no_coloured_number() -> None:
    """Only the glyphs have a colour."""
    tones = overview_page.build_view(fleet.HEALTHY).tones
    assert tones == {"glyph": "ok", "mark-ok": "ok"}


def test_bad_numbers_are_coloured() -> None:
    """Failing targets and dead letters have a tone."""
    view = overview_page.build_view(fleet.FAILING)
    assert (view.tones["failing"], view.tones["letters"]) == ("failing", "late")


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
    """The errors have a limit, and of the domains those in most trouble are shown."""
    errors = tuple(fleet.failure(n) for n in range(overview_tables.ERRORS.limit + 3))
    loads = tuple(fleet.load(f"poll.q{n:02}", overdue=n) for n in range(30))
    loads += (fleet.load("poll.z", shortage=1.5),)
    view = overview_page.build_view(dataclasses.replace(fleet.FAILING, errors=errors, loads=loads))
    assert len(view.rows["errors"]) == overview_tables.ERRORS.limit
    assert view.texts["errors-more"] == "3 more, not shown"
    assert view.texts["capacity-more"] == "25 more, not shown"
    busiest = {f"poll.q{n}" for n in range(25, 30)}
    assert set(view.rows["capacity"]) == busiest | {"poll.z"}


def test_a_domain_with_too_few_workers_shows_the_shortage() -> None:
    """The shortage is text, in the colour of lateness; the number has the colour, too."""
    view = overview_page.build_view(fleet.LATE)
    assert view.texts["capacity/poll.snmp/state"] == "▲ needs 2.3 times the workers"
    assert view.tones["capacity/poll.snmp/state"] == view.tones["capacity"] == "late"
    stuck = dataclasses.replace(fleet.HEALTHY, loads=(fleet.load("poll.x", shortage=None),))
    texts = overview_page.build_view(stuck).texts
    assert texts["capacity/poll.x/state"] == "▲ nothing is polled"
    assert "capacity/poll.snmp/state" not in overview_page.build_view(fleet.HEALTHY).tones


def test_capacity_counts_a_worker_of_several_domains_once() -> None:
    """Used worker-seconds of all domains, of the slots of all running workers."""
    waits = Counter({20: 99})
    times = {"poll.snmp": QueueTimes(15_360_000, waits), "poll.routeros": QueueTimes(15_360_000)}
    view = overview_page.build_view(fleet.HEALTHY, times=times)
    assert view.texts["capacity"] == "50 %"
    assert view.texts["capacity-note"] == "of 61.4 k worker-seconds"
    assert view.texts["capacity/poll.snmp/used"] == "15.4 k of 61.4 k s"
    assert view.texts["capacity/poll.snmp/wait"].endswith("ms")
    assert view.texts["capacity/poll.routeros/wait"] == "–"


def test_old_data_are_explained() -> None:
    """Failing, paused and held targets stay in the bands, and the text says how many there are."""
    ages = PollAges((90, 7, 1, 0, 6), never=2, failing=3, paused=1, held=1, late=1)
    view = overview_page.build_view(fleet.FAILING, ages=AgePicture(ages, True, fleet.NOW_MS))
    assert [view.texts[f"age-{n}"] for n in range(6)] == ["90", "7", "1", "0", "6", "2"]
    why = (
        "6 targets have missed a poll: 3 failing, 1 of a dark site, 1 paused by hand, 1 late. "
        "2 targets have had no good poll yet."
    )
    assert (view.texts["ages-why"], view.texts["ages-count"]) == (why, "")
    assert (view.tones.get("age-3"), view.tones.get("age-4")) == (None, "failing")
    assert "90 up to half" in view.plots["ages"]


def test_a_count_that_is_not_whole_has_shares() -> None:
    """A large fleet is counted over some seconds, and a part of it is a fair sample."""
    ages = PollAges((800, 198, 1, 0, 1), late=1)
    view = overview_page.build_view(fleet.HEALTHY, ages=AgePicture(ages, False, fleet.NOW_MS))
    assert [view.texts[f"age-{n}"] for n in range(3)] == ["≈ 80 %", "≈ 20 %", "< 1 %"]
    assert view.texts["ages-count"] == "Looked at 1,000 of 98,204 targets so far."
    nothing = overview_page.build_view(fleet.HEALTHY).texts
    assert (nothing["age-0"], nothing["ages-count"]) == ("–", "Being counted.")


def test_downtime_of_our_own_is_not_called_lateness() -> None:
    """Without a leader the numbers of punctuality are dashes, and no old data are coloured."""
    ages = AgePicture(PollAges((0, 0, 0, 9, 9), late=18), True, fleet.NOW_MS)
    stopped = dataclasses.replace(fleet.LATE, leader=None)
    view = overview_page.build_view(stopped, ages=ages)
    assert (view.texts["up-to-date"], view.texts["late"]) == ("–", "–")
    assert view.texts["late-note"] == "our own downtime"
    assert "our own downtime" in view.texts["ages-why"]
    assert not {"late", "up-to-date", "capacity", "age-3", "age-4", "p99"} & set(view.tones)
    assert view.texts["capacity/poll.snmp/state"] == "○ nothing is polled"


def test_sites_with_trouble_say_what_is_up_failing_and_held() -> None:
    """A dark site comes first; a site without trouble is not listed."""
    sites = [SiteSummary("a", 9), SiteSummary("b", 9, failing=2), SiteSummary("c", 4, 1, 5, 3)]
    picture = FleetPicture(sites=failing_causes.worst_first(sites), devices=22)
    view = overview_page.build_view(fleet.FAILING, fleet=picture)
    assert view.rows["sites"] == ("c", "b")
    columns = ("state", "up", "failing", "held")
    assert [view.texts[f"sites/c/{each}"] for each in columns] == ["■ dark", "3", "1", "3"]
    assert [view.texts[f"sites/b/{each}"] for each in columns] == ["▲ failing", "7", "2", "–"]


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
