"""The exposed metrics, and their documentation."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
import web_overviews as fleet
from prometheus_client.parser import text_string_to_metric_families

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation.health import Level
from poller.web.api import metrics, snapshot

DOCUMENT = Path(__file__).parents[4] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def exposed(text: str) -> dict[str, tuple[str, set[str]]]:
    """Type and label names of every sample, by its name."""
    return {
        sample.name: (family.type, set(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def values(overview: Overview) -> dict[tuple[str, ...], float]:
    text = metrics.render(overview, Level.OK).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_documented_metrics_are_the_exposed_ones() -> None:
    """docs/metrics.md lists every name with its type and labels, and no others."""
    documented = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in ROW.findall(DOCUMENT.read_text())
    }
    overview = dataclasses.replace(fleet.FAILING, loads=(fleet.load("poll.acme", workers=0),))
    assert exposed(metrics.render(overview, Level.OK).decode()) == documented


def test_the_lateness_is_a_summary() -> None:
    """The quantiles are of the last five minutes; number and sum grow, so `rate()` may be used."""
    text = metrics.render(fleet.FAILING, Level.OK).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    lateness = families["poller_lateness_seconds"]
    assert lateness.type == "summary"
    assert [(sample.name, sample.labels, sample.value) for sample in lateness.samples] == [
        ("poller_lateness_seconds", {"quantile": "0.5"}, 0.012),
        ("poller_lateness_seconds", {"quantile": "0.99"}, 0.086),
        ("poller_lateness_seconds", {"quantile": "1"}, 1.24),
        ("poller_lateness_seconds_count", {}, 19_204_100),
        ("poller_lateness_seconds_sum", {}, 230_449.2),
    ]


def test_the_numbers_are_those_of_the_overview() -> None:
    """Counts, seconds and epochs are not changed."""
    sample = values(fleet.FAILING)
    assert sample["poller_targets", "failing"] == 41
    assert sample["poller_board", "in_flight"] == 1_213
    assert sample["poller_polls_total", "failed"] == 4_111
    assert sample["poller_polls_total", "refused"] == 0
    assert sample["poller_missed_slots_total",] == 17
    assert (sample["poller_breakers_open", "failures"], sample["poller_breakers_open", "hand"]) == (
        29,
        2,
    )
    assert (
        sample["poller_dead_letters", "auth_failed"],
        sample["poller_dead_letters", "open_too_long"],
    ) == (9, 0)
    assert (sample["poller_retries_total",], sample["poller_breaker_skips_total",]) == (801, 90_210)
    assert (
        sample["poller_traps_total", "accepted"],
        sample["poller_traps_total", "unknown_sender"],
    ) == (7, 1_200)
    assert ("poller_traps_total", "malformed") not in sample
    assert sample["poller_traps_polls_total",] == 5
    assert sample["poller_lateness_seconds", "0.99"] == 0.086
    assert sample["poller_leader", "beat-1:4711"] == 7
    assert sample["poller_leader_epoch",] == 7
    assert sample["poller_queue_batches", "poll.snmp;site=ams"] == 1
    assert sample["poller_workers", "running"] == 4


def test_spooled_and_dropped_polls_are_counted() -> None:
    """The label names the worker whose disk fills up."""
    one = fleet.worker(1, name="w@h", spool_waiting=640, spool_dropped=64)
    sample = values(dataclasses.replace(fleet.HEALTHY, workers=(one,)))
    assert sample["poller_worker_spooled_polls", "w@h"] == 640
    assert sample["poller_worker_spool_dropped_total", "w@h"] == 64


def test_hits_and_misses_of_the_credential_cache_are_counted() -> None:
    one = fleet.worker(1, name="w@h", secret_hits=5_000, secret_misses=3)
    sample = values(dataclasses.replace(fleet.HEALTHY, workers=(one,)))
    assert sample["poller_worker_secret_hits_total", "w@h"] == 5_000
    assert sample["poller_worker_secret_misses_total", "w@h"] == 3


def test_unmeasured_values_are_absent() -> None:
    """Before the first poll, lateness and missed slots are absent instead of 0."""
    names = {key[0] for key in values(fleet.EMPTY)}
    assert not names & {"poller_lateness_seconds", "poller_missed_slots_total", "poller_leader"}


def test_an_unreadable_board_exposes_only_up(
    create_client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old numbers would hide an outage."""
    monkeypatch.setattr(snapshot, "MAX_AGE_S", 0)
    readable = True

    def read() -> Overview:
        if readable:
            return fleet.HEALTHY
        raise errors.StoreUnavailable("cannot use Redis")

    client = create_client(read)
    assert "poller_up 1.0" in client.get("/metrics").text
    readable = False
    response = client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert set(exposed(response.text)) == {"poller_up", "poller_health", "poller_build_info"}
    assert "poller_up 0.0" in response.text


def test_labels_are_escaped() -> None:
    """Quotes and line breaks in a name do not break the format."""
    nasty = 'a"b\\c\nd'
    hostile = fleet.worker(1, name=nasty)
    sample = values(dataclasses.replace(fleet.HEALTHY, workers=(hostile,)))
    assert sample["poller_worker_in_flight", nasty] == 125
