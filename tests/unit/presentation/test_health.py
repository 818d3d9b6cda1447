"""The health sentences, their tone and the tab title."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet

from poller.domain.record.overview import Load, Overview, State
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.presentation import health, running_workers
from poller.presentation.health import Level, Tone


@pytest.mark.parametrize(
    ("overview", "tone", "text", "title"),
    [
        (fleet.HEALTHY, Tone.OK, "All 98,204 targets answer. Polling is on time.", "poller"),
        (
            fleet.FAILING,
            Tone.FAILING,
            "41 of 98,204 targets failing. 12 need a person (dead letters). Polling is on time. "
            "2 targets are paused by hand.",
            "(41) poller",
        ),
        (fleet.NO_LEADER, Tone.FAILING, "No leader: nothing is being scheduled.", "(!) poller"),
        (
            fleet.NO_WORKERS,
            Tone.FAILING,
            "No worker is running: nothing is being polled.",
            "(!) poller",
        ),
        (fleet.EMPTY, Tone.UNKNOWN, "Nothing to poll yet. Three ways to begin:", "poller"),
    ],
)
def test_the_verdict_of_each_state(overview: Overview, tone: Tone, text: str, title: str) -> None:
    """Each state of the fleet has its own sentence, tone and tab title."""
    verdict = health.judge(overview)
    assert (verdict.tone, verdict.text, verdict.title) == (tone, text, title)


def test_a_late_fleet_is_not_called_on_time() -> None:
    """The sentence has the overdue targets and the p99 lateness."""
    verdict = health.judge(fleet.LATE)
    assert verdict.tone is Tone.LATE
    assert "Polling is late: 4,310 overdue, one in a hundred starts 12.4 s late." in verdict.text


def test_a_stop_does_not_hide_failing_targets() -> None:
    """Without a leader the failing targets are still counted; lateness is left out."""
    verdict = health.judge(dataclasses.replace(fleet.FAILING, leader=None))
    failing = "41 of 98,204 targets failing. 12 need a person (dead letters)."
    paused = "2 targets are paused by hand."
    assert verdict.text == f"No leader: nothing is being scheduled. {failing} {paused}"
    assert verdict.alarm


def test_a_dark_site_does_not_answer() -> None:
    """Targets that wait for their site are not among those that answer."""
    dark = dataclasses.replace(fleet.HEALTHY, held=4, dark={"west": 1})
    assert "98,200 of 98,204 targets answer." in health.judge(dark).text


def test_dead_letters_are_told_beside_answering_targets() -> None:
    """A letter needs a person, whatever the other targets do."""
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, dead_letters={"auth_failed": 1}))
    assert "All 98,204 targets answer. 1 needs a person (dead letters)." in verdict.text


def test_a_queue_of_which_nothing_is_polled_is_named() -> None:
    """The workers that serve it may all hang; another queue hides that in the numbers."""
    stuck = fleet.load("poll.acme", overdue=9, shortage=None)
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, loads=[*fleet.HEALTHY.loads, stuck]))
    assert "Nothing is polled with collector acme: 9 targets are overdue." in verdict.text


def test_lost_workers_do_not_count_as_running() -> None:
    """A killed worker stays listed, but polls nothing."""
    silent = tuple(fleet.worker(n, seen_ms=fleet.NOW_MS - 60_000) for n in (1, 2))
    assert (
        "No worker is running"
        in health.judge(dataclasses.replace(fleet.HEALTHY, workers=silent)).text
    )


def test_a_lost_worker_is_counted() -> None:
    """The tone is late before any target is overdue."""
    workers = (*fleet.HEALTHY.workers, fleet.worker(9, seen_ms=fleet.NOW_MS - 60_000))
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, workers=workers))
    assert verdict.tone is Tone.LATE
    assert "1 of 5 workers lost." in verdict.text


def test_a_sink_in_trouble_is_named_and_polling_goes_on() -> None:
    """The verdict is not that of a database that does not answer."""
    down = SinkReport(
        "prom", "remote_write", SinkState.DOWN, spooled_polls=64, error="no route.",
        oldest_ms=fleet.NOW_MS - 200_000,
    )  # fmt: skip
    refusing = SinkReport("influx", "influx", SinkState.REFUSING, left_out_reason="too old: up{}")
    workers = (fleet.worker(1, spool_waiting=64, sinks=(down, refusing)),)
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, workers=workers))
    assert verdict.level is Level.ATTENTION
    assert (
        "Sink prom is down: no route; 64 polls wait on disk, the oldest for 3 m 20 s "
        "(poller sinks list prom)." in verdict.text
    )
    assert "Sink influx refuses samples: too old: up{} (poller sinks list influx)." in verdict.text
    assert "cannot be written" not in verdict.text


def test_unwritten_results_are_counted() -> None:
    """Polling continues without a database, and looks healthy otherwise."""
    workers = (fleet.worker(1, spool_waiting=640), fleet.worker(2, spool_waiting=360))
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, workers=workers))
    assert verdict.tone is Tone.LATE
    assert "1,000 results cannot be written: a database or sink does not answer." in verdict.text


def test_a_fleet_before_its_first_poll_is_unknown() -> None:
    """The sentence does not say that polling is on time."""
    fresh = dataclasses.replace(
        fleet.HEALTHY, states={State.UNKNOWN: 98_204}, lateness=fleet.EMPTY.lateness, overdue=0
    )
    verdict = health.judge(fresh)
    assert (verdict.tone, verdict.text) == (Tone.UNKNOWN, "None of 98,204 targets polled yet.")


def test_unserved_targets_are_counted_with_the_missing_need() -> None:
    """The need is a collector or a tag that no running worker has."""
    waiting = dataclasses.replace(
        fleet.HEALTHY,
        loads=[
            fleet.load("poll.acme;zone=dmz", due=1, workers=0),
            fleet.load("poll.hello", due=1200, workers=0),
        ],
    )
    verdict = health.judge(waiting)
    assert verdict.tone is Tone.FAILING
    assert "1 target waits: no running worker has collector acme and tag zone=dmz." in verdict.text
    assert "1,200 targets wait: no running worker has collector hello." in verdict.text


@pytest.mark.parametrize(
    ("overdue", "long", "text"),
    [
        (1, 1, "Polling is late: 1 target overdue by more than two of its intervals."),
        (3, 3, "Polling is late: 3 targets overdue by more than two of their intervals."),
        (
            12,
            3,
            "Polling is late: 3 targets overdue by more than two of their intervals, "
            "12 overdue in all.",
        ),
    ],
)
def test_one_long_overdue_target_makes_polling_late(overdue: int, long: int, text: str) -> None:
    """The share of such targets does not matter."""
    stuck = dataclasses.replace(fleet.HEALTHY, overdue=overdue, long_overdue=long)
    verdict = health.judge(stuck)
    assert verdict.tone is Tone.LATE
    assert verdict.text == f"All 98,204 targets answer. {text}"


def test_a_shortage_of_workers_has_its_factor() -> None:
    """The worst three queues are named by their needs, the others are counted."""
    loads = [Load(f"poll.c{n};zone=dmz", 9, 9, 9, 2.0, 1.0, 1, 1.0 + n / 2) for n in range(1, 6)]
    text = health.judge(dataclasses.replace(fleet.HEALTHY, loads=loads)).text
    assert "Polling with collector c5 and tag zone=dmz needs 3.5 times the workers." in text
    assert "c2" not in text
    assert "2 other queues also need more workers." in text


def test_a_queue_that_keeps_up_is_not_mentioned() -> None:
    """Neither is a queue whose shortage is unknown."""
    loads = [
        Load("poll.snmp", 9, 0, 0, 2.0, 2.0, 1, 0.0),
        Load("poll.x", 9, 9, 9, 2.0, 0.0, 1, None),
    ]
    assert (
        "times the workers"
        not in health.judge(dataclasses.replace(fleet.HEALTHY, loads=loads)).text
    )


def test_every_unroutable_queue_has_its_reason() -> None:
    """The largest queue comes first; lost workers do not count as live."""
    lost = fleet.worker(9, seen_ms=fleet.NOW_MS - 60_000, tags={"zone": "lab"})
    found = running_workers.unroutable(
        dataclasses.replace(fleet.UNROUTABLE, workers=(*fleet.UNROUTABLE.workers, lost))
    )
    assert [(each.queue, each.targets) for each in found] == [
        ("poll.snmp;zone=lab", 312), ("poll.acme-olt;site=ams;zone=dmz", 1),
    ]  # fmt: skip
    assert found[0].needs == "tag zone=lab"
    assert found[0].reason == "needs tag zone=lab; 5 workers live, none has it"


def test_duplicate_names_are_those_of_running_workers() -> None:
    """Celery's own tools mix up workers of one name."""
    assert running_workers.duplicate_names(fleet.HEALTHY) == {}
    assert running_workers.duplicate_names(fleet.UNROUTABLE) == {"celery@poll-4": 2}


def test_of_many_unserved_queues_three_are_named() -> None:
    """The targets of the other queues are counted."""
    loads = [Load(f"poll.c{n}", n, 0, 0, 1.0, 0.0, 0, 0.0) for n in range(1, 7)]
    text = health.judge(dataclasses.replace(fleet.HEALTHY, loads=loads)).text
    assert "6 targets wait: no running worker has collector c6." in text
    assert "c3" not in text
    assert "6 targets of 3 other queues wait as well." in text


def test_queues_with_the_same_missing_need_are_one_sentence() -> None:
    """The targets of both queues are added up."""
    loads = [fleet.load(f"poll.{name};zone=lab", due=2, workers=0) for name in ("snmp", "routeros")]
    text = health.judge(dataclasses.replace(fleet.HEALTHY, loads=loads)).text
    assert "4 targets wait: no running worker has tag zone=lab." in text
    assert text.count("zone=lab") == 1


def test_a_fleet_without_targets_is_neither_answering_nor_on_time() -> None:
    """All targets were removed after polls."""
    cleared = dataclasses.replace(fleet.HEALTHY, targets=0, states={}, due=0, overdue=0)
    assert (health.judge(cleared).tone, health.judge(cleared).text) == (
        Tone.UNKNOWN,
        "There is no target to poll.",
    )


@pytest.mark.parametrize(
    ("states", "text"),
    [
        ({State.OK: 1}, "The only target answers."),
        ({State.UNKNOWN: 1}, "The only target is not polled yet."),
        ({State.FAILING: 1}, "1 of 1 target failing."),
    ],
)
def test_a_fleet_of_one_is_singular(states: dict[State, int], text: str) -> None:
    """The sentence for one target has no number."""
    lone = dataclasses.replace(fleet.HEALTHY, targets=1, overdue=0, states=states)
    assert health.judge(lone).text.startswith(text)


def test_dark_sites_are_one_sentence() -> None:
    """The sentence names the dark sites and counts the targets that wait."""
    dark = dataclasses.replace(fleet.HEALTHY, held=1_997, dark={"west": 1, "east": 2})
    verdict = health.judge(dark)
    assert verdict.tone is Tone.FAILING
    assert (
        "Sites west, east are dark: 1,997 targets wait while a few canaries are polled."
        in verdict.text
    )


def test_rows_that_were_not_pruned_are_mentioned() -> None:
    """The fleet is polled as before, but the operator must look at a clock."""
    reason = "the clock of the database is 100 d ahead of that of Redis"
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, prune_refused=reason))
    assert verdict.tone is Tone.LATE
    assert verdict.text.endswith(f"Old rows are kept: {reason}.")
