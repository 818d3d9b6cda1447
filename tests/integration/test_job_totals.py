"""Counters of job runs in Redis: they add up over processes and never fail a run."""

from __future__ import annotations

import redis

from poller.domain.jobs.run_totals import EDGES_S, RunOutcome
from poller.state import redis_client as clients
from poller.state.cluster import job_totals
from poller.state.keys import Keys

KEYS = Keys()


def test_ended_runs_are_counted_by_job_and_outcome(redis_client: redis.Redis) -> None:
    """Outcomes, durations and lateness of one job are apart from those of another."""
    for duration_s in (0.05, 0.1, 0.2, 7200):
        job_totals.record_run(redis_client, KEYS, "a.b", RunOutcome.SUCCESS, duration_s, 0.25)
    job_totals.record_run(redis_client, KEYS, "a.b", RunOutcome.RETRIED, 1.5)
    job_totals.record_run(redis_client, KEYS, "other", RunOutcome.FAILED, 2.0)
    job_totals.record_stale(redis_client, KEYS, ["a.b", "other", "a.b"])

    totals = job_totals.read(redis_client, KEYS)
    assert set(totals) == {"a.b", "other"}
    one = totals["a.b"]
    assert dict(one.outcomes) == {
        RunOutcome.SUCCESS: 4,
        RunOutcome.RETRIED: 1,
        RunOutcome.STALE: 2,
    }
    assert one.cumulative()[:4] == [2, 3, 3, 4]
    assert (one.cumulative()[len(EDGES_S) - 1], one.cumulative()[-1]) == (4, 5)
    assert one.duration_ms == 50 + 100 + 200 + 7_200_000 + 1500
    assert (one.starts, one.lateness_ms) == (4, 1000)
    assert totals["other"].outcomes == {RunOutcome.FAILED: 1, RunOutcome.STALE: 1}


def test_a_forgotten_job_has_no_counters(redis_client: redis.Redis) -> None:
    """A job whose name begins alike keeps its counters."""
    for job in ("a", "ab"):
        job_totals.record_run(redis_client, KEYS, job, RunOutcome.SUCCESS, 1.0)
    job_totals.forget(redis_client, KEYS, "a")
    job_totals.forget(redis_client, KEYS, "a")
    assert set(job_totals.read(redis_client, KEYS)) == {"ab"}


def test_unknown_and_damaged_fields_hide_no_others(redis_client: redis.Redis) -> None:
    """Fields of a later release and rubbish are left out."""
    job_totals.record_run(redis_client, KEYS, "a", RunOutcome.SUCCESS, 1.0)
    damaged = {"a|run|later": "1", "a|le|x": "1", "a|ms": "many", "a|new": "3", "": "1"}
    redis_client.hset(KEYS.job_totals, mapping=damaged)
    totals = job_totals.read(redis_client, KEYS)["a"]
    assert totals.outcomes == {RunOutcome.SUCCESS: 1}
    assert totals.duration_ms == 0
    assert totals.cumulative()[-1] == 1


def test_a_redis_that_is_gone_fails_no_run(free_port: int) -> None:
    client = clients.connect(f"redis://127.0.0.1:{free_port}/0", retries=0)
    job_totals.record_run(client, KEYS, "a", RunOutcome.SUCCESS, 1.0)
    job_totals.record_stale(client, KEYS, ["a"])
