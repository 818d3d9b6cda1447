"""What Prometheus sees, and what we promised it would see."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import web_overviews as fleet
from prometheus_client.parser import text_string_to_metric_families

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.api import metrics, snapshot

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def exposed(text: str) -> dict[str, tuple[str, set[str]]]:
    """Name -> type and label names, of every sample."""
    return {
        sample.name: (family.type, set(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def values(overview: Overview) -> dict[tuple[str, ...], float]:
    text = metrics.render(overview).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_documented_metrics_are_the_exposed_ones() -> None:
    """Every name, type and label in docs/metrics.md is real, and nothing real is missing there."""
    documented = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in ROW.findall(DOCUMENT.read_text())
    }
    everything = dataclasses.replace(fleet.FAILING, loads=(fleet.load("poll.acme", workers=0),))
    assert exposed(metrics.render(everything).decode()) == documented


def test_numbers_arrive_unharmed() -> None:
    """Counts, seconds and epochs are those of the overview."""
    seen = values(fleet.FAILING)
    assert seen["poller_targets", "failing"] == 41
    assert seen["poller_board", "in_flight"] == 1_213
    assert seen["poller_polls_total", "failed"] == 4_111
    assert seen["poller_polls_total", "refused"] == 0
    assert seen["poller_missed_slots_total",] == 17
    assert (seen["poller_breakers_open", "failures"], seen["poller_breakers_open", "hand"]) == (
        29,
        2,
    )
    assert (
        seen["poller_dead_letters", "auth_failed"],
        seen["poller_dead_letters", "open_too_long"],
    ) == (9, 0)
    assert (seen["poller_retries_total",], seen["poller_breaker_skips_total",]) == (801, 90_210)
    assert (
        seen["poller_traps_total", "accepted"],
        seen["poller_traps_total", "unknown_sender"],
    ) == (7, 1_200)
    assert ("poller_traps_total", "malformed") not in seen
    assert seen["poller_traps_polls_total",] == 5
    assert seen["poller_lateness_seconds", "0.99"] == 0.086
    assert seen["poller_leader", "beat-1:4711"] == 7
    assert seen["poller_leader_epoch",] == 7
    assert seen["poller_queue_batches", "poll.snmp;site=ams"] == 1
    assert seen["poller_workers", "running"] == 4


def test_what_waits_on_a_workers_disk_is_counted_and_what_was_dropped_too() -> None:
    """By worker: the disk that fills up has an address."""
    one = fleet.worker(1, name="w@h", spool_waiting=640, spool_dropped=64)
    seen = values(dataclasses.replace(fleet.HEALTHY, workers=(one,)))
    assert seen["poller_worker_spooled_polls", "w@h"] == 640
    assert seen["poller_worker_spool_dropped_total", "w@h"] == 64


def test_what_was_not_measured_is_absent() -> None:
    """Before the first poll there is no lateness and no count of missed slots, not a flattering 0."""
    names = {key[0] for key in values(fleet.EMPTY)}
    assert not names & {"poller_lateness_seconds", "poller_missed_slots_total", "poller_leader"}


def test_an_unreadable_board_is_a_gap(ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old numbers would hide an outage: only the outage itself is exposed."""
    monkeypatch.setattr(snapshot, "MAX_AGE_S", 0)
    readable = True

    def read() -> Overview:
        if readable:
            return fleet.HEALTHY
        raise errors.StoreUnavailable("cannot use Redis")

    client = ask(read)
    assert "poller_up 1.0" in client.get("/metrics").text
    readable = False
    answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert set(exposed(answer.text)) == {"poller_up", "poller_build_info"}
    assert "poller_up 0.0" in answer.text


def test_hostile_labels_stay_labels() -> None:
    """Quotes, line breaks and tags in a name do not break the format."""
    nasty = 'a"b\\c\nd'
    hostile = fleet.worker(1, name=nasty)
    seen = values(dataclasses.replace(fleet.HEALTHY, workers=(hostile,)))
    assert seen["poller_worker_in_flight", nasty] == 125
