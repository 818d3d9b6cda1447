"""Counts of polls by collector."""

from __future__ import annotations

from poller.domain.failures.outcome import Result
from poller.domain.metrics import poll_totals
from poller.domain.metrics.poll_totals import EDGES_MS, Time
from poller.domain.record.run import Run


def run(target_id: int, **values: object) -> Run:
    made = Run(
        target_id=target_id,
        plan_ms=1_000,
        outcome=Result.OK,
        started_ms=1_030,
        finished_ms=1_070,
        queue_ms=20,
        collect_ms=40,
    )
    return made._replace(**values)  # type: ignore[arg-type]


def test_a_round_is_a_few_counters() -> None:
    """Sixty-four polls that are alike increment one field for each thing that is counted."""
    runs = [run(number) for number in range(64)]
    counts = poll_totals.of_round("snmp", runs, range(64))
    assert counts == {
        "snmp|end|ok": 64,
        "snmp|took|1": 64,
        "snmp|took|ms": 64 * 40,
        "snmp|waited|1": 64,
        "snmp|waited|ms": 64 * 20,
        "snmp|late|1": 64,
        "snmp|late|ms": 64 * 30,
    }


def test_an_attempt_that_is_tried_again_has_a_code_and_no_outcome() -> None:
    failed = run(7, outcome=Result.FAILED, error_code="timeout")
    counts = poll_totals.of_round("snmp", [failed], finished=())
    assert counts["snmp|code|timeout"] == 1
    assert "snmp|end|failed" not in counts


def test_a_further_attempt_is_neither_late_nor_in_the_queue() -> None:
    """Its slot and its claim are those of the first attempt."""
    counts = poll_totals.of_round("snmp", [run(7, attempt=2)], finished=(7,))
    totals = poll_totals.parse(counts.items())["snmp"]
    assert totals.times[Time.DURATION].buckets.total() == 1
    assert totals.times[Time.LATENESS].buckets.total() == 0
    assert totals.times[Time.QUEUE_WAIT].buckets.total() == 0


def test_an_edge_belongs_to_its_bucket() -> None:
    """Prometheus counts a value up to and with the edge `le`."""
    totals = poll_totals.parse(
        poll_totals.of_round("ping", [run(1, collect_ms=EDGES_MS[2])], finished=(1,)).items()
    )
    assert totals["ping"].times[Time.DURATION].cumulative()[:4] == [0, 0, 1, 1]


def test_a_value_above_the_last_edge_is_counted() -> None:
    counts = poll_totals.of_round("ping", [run(1, collect_ms=10**7)], finished=(1,))
    took = poll_totals.parse(counts.items())["ping"].times[Time.DURATION]
    assert took.cumulative()[-2:] == [0, 1]


def test_fields_of_another_release_are_left_out() -> None:
    fields = {"snmp|new|x": 4, "junk": 1, "snmp|took|x": 2, "snmp|end|ok": 3}
    totals = poll_totals.parse(fields.items())
    assert totals["snmp"].outcomes == {"ok": 3}
    assert set(totals) == {"snmp"}
