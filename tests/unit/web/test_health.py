"""The sentence that is read first."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet

from poller.domain.overview import Overview, State
from poller.web import health
from poller.web.health import Tone


@pytest.mark.parametrize(
    ("overview", "tone", "text", "title"),
    [
        (fleet.HEALTHY, Tone.OK, "All 98,204 targets answer. Polling is on time.", "poller"),
        (fleet.FAILING, Tone.FAILING, "41 of 98,204 targets failing. Polling is on time.", "(41) poller"),
        (fleet.NO_LEADER, Tone.FAILING, "No leader: nothing is being scheduled.", "(!) poller"),
        (fleet.NO_WORKERS, Tone.FAILING, "No worker is running: nothing is being polled.", "(!) poller"),
        (fleet.EMPTY, Tone.UNKNOWN, "Nothing to poll yet. Three ways to begin:", "poller"),
    ],
)
def test_the_sentence_names_what_matters_most(overview: Overview, tone: Tone, text: str, title: str) -> None:
    """Each way of being well or ill has its own sentence, tone and tab title."""
    verdict = health.judge(overview)
    assert (verdict.tone, verdict.text, verdict.title) == (tone, text, title)


def test_a_late_fleet_is_not_called_on_time() -> None:
    """Overdue targets and the p99 are said in numbers."""
    verdict = health.judge(fleet.LATE)
    assert verdict.tone is Tone.LATE
    assert "Polling is late: 4,310 overdue, one in a hundred starts 12.4 s late." in verdict.text


def test_a_stop_does_not_hide_failing_targets() -> None:
    """Without a leader the failing targets are still counted, and good news is left out."""
    verdict = health.judge(dataclasses.replace(fleet.FAILING, leader=None))
    assert verdict.text == "No leader: nothing is being scheduled. 41 of 98,204 targets failing."
    assert verdict.alarm


def test_workers_that_only_died_do_not_count_as_running() -> None:
    """A worker killed without a good-bye stays listed, but nothing is being polled by it."""
    silent = tuple(fleet.worker(n, seen_ms=fleet.NOW_MS - 60_000) for n in (1, 2))
    assert "No worker is running" in health.judge(dataclasses.replace(fleet.HEALTHY, workers=silent)).text


def test_one_lost_worker_of_many_is_said() -> None:
    """A lost worker turns the sentence to late before anything is overdue."""
    workers = (*fleet.HEALTHY.workers, fleet.worker(9, seen_ms=fleet.NOW_MS - 60_000))
    verdict = health.judge(dataclasses.replace(fleet.HEALTHY, workers=workers))
    assert verdict.tone is Tone.LATE
    assert "1 of 5 workers lost." in verdict.text


def test_targets_before_their_first_poll_are_no_good_news() -> None:
    """An unpolled fleet is unknown, and nobody claims that it is on time."""
    fresh = dataclasses.replace(fleet.HEALTHY, states={State.UNKNOWN: 98_204}, lateness=fleet.EMPTY.lateness, overdue=0)
    verdict = health.judge(fresh)
    assert (verdict.tone, verdict.text) == (Tone.UNKNOWN, "None of 98,204 targets polled yet.")


def test_targets_nobody_takes_are_named_with_what_is_missing() -> None:
    """A plugin that only some host has, a tag no worker carries: never just silence."""
    waiting = dataclasses.replace(
        fleet.HEALTHY,
        loads=[fleet.load("poll.acme;zone=dmz", due=1, workers=0), fleet.load("poll.hello", due=1200, workers=0)],
    )
    verdict = health.judge(waiting)
    assert verdict.tone is Tone.FAILING
    assert "1 target waits: no running worker has collector acme and zone=dmz." in verdict.text
    assert "1,200 targets wait: no running worker has collector hello." in verdict.text
