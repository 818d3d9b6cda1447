"""The exposed metrics, and their documentation."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import web_overviews as fleet
from prometheus_client.parser import text_string_to_metric_families

from poller import errors
from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.run_totals import EDGES_S, RunOutcome, RunTotals
from poller.domain.record.overview import Overview
from poller.domain.record.sink_report import SinkReport, SinkState
from poller.metering import instruments, process_metrics
from poller.observability.exposition import text_format
from poller.presentation.health import Level
from poller.web.api import metrics, snapshot
from poller.web.api.job_metrics import JobReading

DOCUMENT = Path(__file__).parents[4] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `((?:poller|snmp)_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


def exposed(text: str) -> dict[str, tuple[str, set[str]]]:
    """Type and label names of every sample, by its name."""
    return {
        sample.name: (family.type, set(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def values(
    overview: Overview, jobs: Sequence[JobReading] | None = None
) -> dict[tuple[str, ...], float]:
    text = metrics.render(overview, Level.OK, jobs).decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def reading(name: str = "nightly", **values: Any) -> JobReading:
    """A job that waits for its first run."""
    waiting: dict[str, Any] = {
        "state": JobState.WAITING,
        "last_success_age_s": None,
        "running": 0,
        "past_lease": 0,
        "totals": RunTotals(),
    }
    return JobReading(name, **{**waiting, **values})


def ran() -> RunTotals:
    return RunTotals(
        outcomes=Counter({RunOutcome.SUCCESS: 3, RunOutcome.STALE: 2}),
        buckets=Counter({0: 1, 3: 1, len(EDGES_S): 1}),
        duration_ms=7_203_050,
        starts=3,
        lateness_ms=1500,
    )


def test_the_documented_metrics_are_the_exposed_ones() -> None:
    """docs/metrics.md lists every name with its type and labels, and no others."""
    documented = {
        name: (kind, set(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in ROW.findall(DOCUMENT.read_text())
    }
    workers = (fleet.worker(1, sinks=(SinkReport("prom", "remote_write"),)),)
    loads = (fleet.load("poll.acme", workers=0),)
    overview = dataclasses.replace(fleet.FAILING, loads=loads, workers=workers)
    jobs = [reading(totals=ran(), last_success_age_s=5.0)]
    of_cluster = exposed(metrics.render(overview, Level.OK, jobs, AlertNumbers()).decode())
    of_processes = exposed(process_metrics_text())
    assert not of_cluster.keys() & of_processes.keys()
    assert of_cluster | of_processes == documented


def test_sinks_are_those_of_the_running_workers() -> None:
    """Every state has a value, and a reason for losses starts at 0, so that a rise is seen."""
    report = SinkReport(
        "prom", "remote_write", SinkState.DOWN, polls=7, samples=70, oldest_ms=fleet.NOW_MS - 5_000,
        spooled_polls=3, spooled_bytes=30, dropped={"full": 2}, left_out=4,
    )  # fmt: skip
    running = fleet.worker(1, name="w@h", sinks=(report,))
    lost = fleet.worker(2, name="x@h", sinks=(report,), seen_ms=1)
    sample = values(dataclasses.replace(fleet.HEALTHY, workers=(running, lost)))
    assert sample["poller_sink_state", "prom", "down", "w@h"] == 1
    assert sample["poller_sink_state", "prom", "ok", "w@h"] == 0
    assert sample["poller_sink_samples_total", "prom", "w@h"] == 70
    assert sample["poller_sink_lag_seconds", "prom", "w@h"] == 5
    assert sample["poller_sink_dropped_polls_total", "full", "prom", "w@h"] == 2
    assert sample["poller_sink_dropped_polls_total", "refused", "prom", "w@h"] == 0
    assert sample["poller_sink_left_out_samples_total", "prom", "w@h"] == 4
    assert ("poller_sink_samples_total", "prom", "x@h") not in sample


def process_metrics_text() -> str:
    """All metrics of a process, each with a value."""
    for instrument in process_metrics.INSTRUMENTS:
        labels = ["x"] * len(instrument.labels)
        if isinstance(instrument, instruments.Counter):
            instrument.add(*labels)
        elif isinstance(instrument, instruments.Histogram):
            instrument.observe(1.0, *labels)
        elif isinstance(instrument, instruments.Gauge):
            instrument.set(1, *labels)
    return text_format.render([text_format.of_process("web", "web")]).decode()


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
    assert sample["poller_polls_total", "snmp", "failed"] == 4_111
    assert sample["poller_polls_total", "snmp", "refused"] == 0
    assert sample["poller_poll_errors_total", "timeout", "snmp"] == 4_900
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


def test_the_times_of_polls_are_histograms() -> None:
    """Buckets are cumulative; a value above the last edge is only in +Inf."""
    sample = values(fleet.HEALTHY)
    name = "poller_poll_duration_seconds"
    assert [sample[f"{name}_bucket", "snmp", edge] for edge in ("0.01", "0.1", "0.25", "+Inf")] == [
        3,
        3,
        5,
        5,
    ]
    assert (sample[f"{name}_count", "snmp"], sample[f"{name}_sum", "snmp"]) == (5, 0.43)
    assert sample["poller_poll_lateness_seconds_bucket", "snmp", "300"] == 4
    assert sample["poller_poll_lateness_seconds_count", "snmp"] == 5


def test_urgent_targets_are_a_place_of_their_own() -> None:
    queue = fleet.load("poll.snmp", due=50, urgent=8, due_soon=20)
    sample = values(dataclasses.replace(fleet.HEALTHY, due=50, loads=(queue,)))
    assert (sample["poller_board", "due"], sample["poller_board", "urgent"]) == (42, 8)
    assert sample["poller_queue_due_soon_targets", "poll.snmp"] == 20


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


def test_the_runs_of_a_job_are_counted() -> None:
    """Counters and sums are those of Redis; an outcome that did not happen is 0."""
    job = reading(state=JobState.FAILING, totals=ran(), last_success_age_s=61.5, running=2)
    sample = values(fleet.HEALTHY, [job, reading("other")])
    assert sample["poller_job_runs_total", "nightly", "success"] == 3
    assert sample["poller_job_runs_total", "other", "failed"] == 0
    assert sample["poller_job_stale_leases_closed_total", "nightly"] == 2
    assert sample["poller_job_last_success_age_seconds", "nightly"] == 61.5
    assert (sample["poller_job_running", "nightly"], sample["poller_job_running", "other"]) == (
        2,
        0,
    )
    buckets = [
        sample["poller_job_duration_seconds_bucket", "nightly", edge]
        for edge in ("0.1", "1", "2.5", "3600", "+Inf")
    ]
    assert buckets == [1, 1, 2, 2, 3]
    assert sample["poller_job_duration_seconds_count", "nightly"] == 3
    assert sample["poller_job_duration_seconds_sum", "nightly"] == 7203.05
    assert sample["poller_job_lateness_seconds_sum", "nightly"] == 1.5
    assert ("poller_job_last_success_age_seconds", "other") not in sample
    assert ("poller_job_duration_seconds_count", "other") not in sample


def test_a_job_has_one_state() -> None:
    """Jobs are counted by state, and each is named with its own."""
    jobs = [reading("a", state=JobState.OVERDUE), reading("b"), reading("c")]
    sample = values(fleet.HEALTHY, jobs)
    assert (sample["poller_jobs", "overdue"], sample["poller_jobs", "waiting"]) == (1, 2)
    assert sample["poller_jobs", "failing"] == 0
    states = {key[1:] for key in sample if key[0] == "poller_job_state"}
    assert states == {("a", "overdue"), ("b", "waiting"), ("c", "waiting")}


def test_unreadable_jobs_are_a_gap(create_client) -> None:
    """Polling is exposed while SQL cannot be read."""

    def unreadable() -> Sequence[JobReading]:
        raise errors.StoreUnavailable("cannot use the database")

    text = create_client(fleet.HEALTHY, job_readings=unreadable).get("/metrics").text
    names = set(exposed(text))
    assert "poller_targets" in names
    assert not {name for name in names if name.startswith("poller_job")}
    text = create_client(fleet.HEALTHY, job_readings=lambda: [reading("a")]).get("/metrics").text
    assert 'poller_job_state{job="a",state="waiting"} 1.0' in text
