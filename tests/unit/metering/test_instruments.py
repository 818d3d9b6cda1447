"""Counters and histograms of one process."""

from __future__ import annotations

import os
import threading

import pytest

from poller.metering import process_metrics
from poller.metering.instruments import Counter, Gauge, Histogram


def test_a_counter_counts_by_label() -> None:
    counter = Counter("polls", "Polls.", "result")
    counter.add("ok")
    counter.add("ok", by=4)
    counter.add("failed", by=0)
    assert counter.samples() == [
        ("_total", {"result": "ok"}, 5),
        ("_total", {"result": "failed"}, 0),
    ]


def test_no_count_of_two_threads_is_lost() -> None:
    """`+=` on a dictionary entry is no single step of the interpreter."""
    counter = Counter("polls", "Polls.")
    threads = [
        threading.Thread(target=lambda: [counter.add() for _ in range(20_000)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.samples() == [("_total", {}, 80_000)]


def test_a_gauge_has_its_last_value() -> None:
    gauge = Gauge("memory", "Memory.")
    gauge.set(5)
    gauge.set(3)
    assert gauge.samples() == [("", {}, 3)]


def test_the_buckets_of_a_histogram_are_cumulative() -> None:
    """A value on an edge is in the bucket of that edge; one above all edges only in +Inf."""
    histogram = Histogram("calls", "Calls.", "call", edges_s=(0.1, 1.0))
    for seconds in (0.1, 0.5, 7.0):
        histogram.observe(seconds, "finish")
    assert histogram.samples() == [
        ("_bucket", {"call": "finish", "le": "0.1"}, 1),
        ("_bucket", {"call": "finish", "le": "1"}, 2),
        ("_bucket", {"call": "finish", "le": "+Inf"}, 3),
        ("_count", {"call": "finish"}, 3),
        ("_sum", {"call": "finish"}, 7.6),
    ]


def test_a_call_that_fails_is_timed() -> None:
    histogram = Histogram("calls", "Calls.", edges_s=(10.0,))
    with pytest.raises(ValueError), histogram.timed():
        raise ValueError
    assert histogram.samples()[0] == ("_bucket", {"le": "10"}, 1)


def test_a_forked_child_begins_with_no_counts() -> None:
    """The numbers of its parent are exposed by its parent."""
    process_metrics.tick_failures.add()
    child = os.fork()
    if not child:
        os._exit(len(process_metrics.tick_failures.samples()))
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert process_metrics.tick_failures.samples()


def test_every_metric_has_one_name() -> None:
    names = [instrument.name for instrument in process_metrics.INSTRUMENTS]
    assert len(names) == len(set(names)) > 20
    strange = {name for name in names if not name.startswith("poller_")}
    assert strange == {  # those of snmp_exporter, whose alerts and dashboards go on working
        "snmp_collection_duration_seconds",
        "snmp_packet_retries",
        "snmp_packets",
        "snmp_request_errors",
        "snmp_request_in_flight",
    }
