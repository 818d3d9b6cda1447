"""An overview as texts, and the difference between two of them."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet

from poller.domain.record.overview import Point
from poller.web.pages import overview_page, overview_tables
from poller.web.pages.overview_page import View


def shown(old: View | None, changed: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    """What a page that showed `old` shows after a patch: the rule the script follows."""
    parts = {
        part: dict(getattr(old, part)) if old else {}
        for part in ("texts", "tones", "rows", "plots")
    }
    for part, cells in changed.items():
        parts[part] |= cells
        parts[part] = {key: value for key, value in parts[part].items() if value is not None}
    return parts


def test_patches_lead_to_the_new_view() -> None:
    """Old view plus changes is the new view, in both directions and from nothing."""
    healthy, failing = overview_page.present(fleet.HEALTHY), overview_page.present(fleet.FAILING)
    for old, new in ((None, healthy), (healthy, failing), (failing, healthy)):
        whole = {part: dict(getattr(new, part)) for part in ("texts", "tones", "rows", "plots")}
        assert shown(old, overview_page.changes(old, new)) == whole


def test_an_unchanged_view_is_no_patch() -> None:
    """Nothing is sent when nothing changed."""
    assert (
        overview_page.changes(
            overview_page.present(fleet.FAILING), overview_page.present(fleet.FAILING)
        )
        == {}
    )


def test_one_second_later_only_what_moved_is_sent() -> None:
    """A quiet second costs a clock and some ages, far below the 4 KB a second we allow ourselves."""
    later = dataclasses.replace(fleet.HEALTHY, as_of_ms=fleet.NOW_MS + 1000)
    changed = overview_page.changes(
        overview_page.present(fleet.HEALTHY), overview_page.present(later)
    )
    assert set(changed) == {"texts"}
    assert changed["texts"]["as-of"] == "2026-11-17T00:13:13Z"
    assert len(str(changed)) < 1024


def test_a_healthy_fleet_has_no_loud_cell() -> None:
    """Only the mark before a word is coloured when all is well."""
    tones = overview_page.present(fleet.HEALTHY).tones
    assert tones == {"glyph": "ok", "mark-ok": "ok"}


def test_trouble_is_loud() -> None:
    """Failing targets and dead letters are coloured, and so is a worker that fell silent."""
    lost = fleet.worker(1, seen_ms=fleet.NOW_MS - 61_000)
    made = overview_page.present(
        dataclasses.replace(fleet.FAILING, workers=(lost, fleet.worker(2)))
    )
    assert (made.tones["failing"], made.tones["letters"]) == ("failing", "late")
    assert made.tones["workers/celery@poll-1/seen"] == "failing"
    assert made.texts["workers/celery@poll-1/seen"] == "■ 1 m 1 s"
    assert "workers/celery@poll-2/seen" not in made.tones


def test_long_tables_are_cut_and_say_so() -> None:
    """What is left out is counted, never silently dropped."""
    crowd = tuple(fleet.worker(n) for n in range(overview_tables.WORKERS.limit + 14))
    loads = tuple(fleet.load(f"poll.q{n}", waiting=n) for n in range(30))
    made = overview_page.present(dataclasses.replace(fleet.HEALTHY, workers=crowd, loads=loads))
    assert len(made.rows["workers"]) == overview_tables.WORKERS.limit
    assert made.texts["workers-more"] == "14 more, not shown"
    assert made.texts["queues-more"] == "22 more, not shown"
    assert set(made.rows["queues"]) == {f"poll.q{n}" for n in range(22, 30)}


def test_a_queue_that_is_short_of_workers_says_how_short() -> None:
    """In words beside the number, in the colour of lateness; one where nothing is done, too."""
    made = overview_page.present(fleet.LATE)
    assert made.texts["queues/poll.snmp/workers"] == "▲ 4, needs 2.3 times as many"
    assert made.tones["queues/poll.snmp/workers"] == "late"
    stuck = dataclasses.replace(fleet.HEALTHY, loads=(fleet.load("poll.x", shortage=None),))
    assert overview_page.present(stuck).texts["queues/poll.x/workers"] == "▲ 4, nothing is done"
    assert "queues/poll.snmp/workers" not in overview_page.present(fleet.HEALTHY).tones


def test_the_causes_of_the_last_errors_are_counted() -> None:
    """Twelve errors are usually two causes."""
    text = overview_page.present(fleet.FAILING).texts["causes"]
    assert text == "By cause, of the last 20: timeout 10 · auth_failed 5 · unreachable 5"


def test_two_errors_of_one_target_in_one_millisecond_share_a_row() -> None:
    """A key never stands twice in a table, or a page could not tell the rows apart."""
    made = overview_page.present(
        dataclasses.replace(fleet.FAILING, errors=(fleet.failure(1), fleet.failure(1)))
    )
    assert len(made.rows["errors"]) == 1


def test_a_fleet_at_rest_has_no_lateness() -> None:
    """Slices without a poll are a true zero of throughput, but no lateness at all."""
    idle = tuple(
        Point(fleet.NEWEST_MS - n * fleet.SLICE_MS, 10.0, 0, 0, 0.0) for n in reversed(range(90))
    )
    made = overview_page.present(
        dataclasses.replace(fleet.HEALTHY, recent=idle, lateness=fleet.EMPTY.lateness)
    )
    assert 'class="line polls"' in made.plots["polls"]
    assert 'class="line lateness"' not in made.plots["lateness"]
    assert "nothing was measured" in made.plots["lateness"]
    assert made.texts["p99"] == "–"


def test_a_number_nobody_counts_is_not_shown_as_zero() -> None:
    """Missed slots are a dash until the board counts them."""
    assert (
        overview_page.present(dataclasses.replace(fleet.HEALTHY, totals={"polls": 1})).texts[
            "missed"
        ]
        == "–"
    )


def test_old_numbers_are_not_shown_as_news() -> None:
    """When the board cannot be read, the sentence says so and when the numbers were true."""
    made = overview_page.present(fleet.HEALTHY, "cannot use Redis at 127.0.0.1:6379/0")
    assert made.texts["health"].startswith(
        "Cannot see the board: cannot use Redis at 127.0.0.1:6379/0."
    )
    assert "00:13:12 UTC" in made.texts["health"]
    assert made.tones["health"] == "failing"
