"""Leaders, workers and stores are struck while a job runs on a short cadence: each plan has one
run that succeeds. `python -m tests.chaos_jobs` is the long form.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from celery import Celery

from poller.db import database_clock
from poller.db.jobs import job_ledger
from poller.domain.jobs.job_run import JobRun, Plan, Status
from poller.state.cluster import beat_registry, overview_reader
from poller.web.api import jobs_json
from tests.acceptance import job_chaos, steady_jobs
from tests.acceptance.cluster import soon
from tests.acceptance.job_chaos import Chaos, SteadyCluster, Verdict, Watch
from tests.acceptance.steady_jobs import HURRIED, MOST_ATTEMPTS, MOST_PLANS, STEADY

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]

MINUTE_MS = 60_000
RAGE_S = 15.0


def struck(
    cluster: SteadyCluster, victim: str, once: Callable[[], object] | None = None
) -> tuple[Verdict, Watch]:
    """Strike a cluster for a while, and wait until all plans were run."""
    cluster.started()
    watch = Watch(cluster)
    chaos = Chaos(cluster, random.Random(7), watch)
    chaos.rage(RAGE_S, [victim], [once] if once else [])
    verdict = job_chaos.settle(cluster)
    watch.look(limit=1_000)
    print(dict(chaos.strikes), verdict.text(), dict(watch.codes))
    return verdict, watch


def test_each_plan_runs_once_while_leaders_are_struck(tmp_path: Path) -> None:
    """Three beats; the one that leads is killed, frozen or stopped every few seconds."""
    with SteadyCluster(tmp_path, cadence_s=2.0) as cluster:
        for _ in range(3):
            cluster.start_beat()
        cluster.start_worker()
        verdict, _ = struck(cluster, "leader")
        assert verdict.faults == {}
        assert verdict.most_attempts == 1
        ended = Counter(line.plan_ms for line in cluster.lines("ended"))
        assert set(ended.values()) == {1}


def test_each_plan_succeeds_while_workers_are_struck_and_redis_is_emptied(tmp_path: Path) -> None:
    """Runs are abandoned, given back and taken over; what ended well never changes."""
    with SteadyCluster(tmp_path, cadence_s=3.0, length_s=1.0) as cluster:
        cluster.start_beat()
        for _ in range(2):
            cluster.start_worker()
        verdict, watch = struck(cluster, "worker", cluster.valkey.client.flushall)
        assert verdict.faults == {}
        assert verdict.most_attempts < MOST_ATTEMPTS
        assert watch.changed == []


def test_missed_plans_of_the_window_are_run_in_order_and_ten_at_a_time(tmp_path: Path) -> None:
    """Two hours of downtime at one plan a minute, a window of one hour; the other job runs its
    latest plan only.
    """
    with SteadyCluster(tmp_path, cadence_s=60.0, length_s=0.0) as cluster:
        now_ms = database_clock.now_ms(cluster.services.engine)
        latest_ms = now_ms - now_ms % MINUTE_MS
        for spec in (steady_jobs.steady, steady_jobs.hurried):
            plan = Plan(spec.name, "global", "global", latest_ms - 120 * MINUTE_MS)
            claim = job_ledger.claim(cluster.services.engine, plan, spec.terms, "before", now_ms)
            job_ledger.succeed(cluster.services.engine, claim.run_id, claim.token, 0, {})
        cluster.start_beat()
        cluster.start_worker()
        began_ms = now_ms
        celery = Celery(broker=cluster.valkey.url)

        def caught_up() -> list[JobRun] | None:
            runs = cluster.runs()[1:]
            if any(run.status is not Status.SUCCESS for run in runs):
                return None
            if len(runs) >= 60:
                return runs
            # More often than the leader does; a pass while a run of the job is under way is empty.
            celery.send_task("poller.plan_jobs", args=[[STEADY, HURRIED]], queue=steady_jobs.QUEUE)
            time.sleep(0.3)
            return None

        runs = soon(caught_up, 60, "all plans of the window are run")
        ended_ms = database_clock.now_ms(cluster.services.engine)
        plans = [run.plan.plan_ms for run in runs]
        assert plans == list(range(plans[0], plans[-1] + 1, MINUTE_MS))
        assert began_ms - 3_600_000 <= plans[0] <= ended_ms - 3_600_000 + MINUTE_MS
        assert plans[-1] >= latest_ms
        order = [line.plan_ms for line in cluster.lines("ended")]
        assert order == plans
        passes = Counter(run.dispatched_ms for run in runs)
        assert max(passes.values()) <= MOST_PLANS
        latest = {latest_ms, latest_ms + MINUTE_MS}
        assert {run.plan.plan_ms for run in cluster.runs(HURRIED)[1:]} <= latest


def test_two_beats_without_election_run_each_plan_once(tmp_path: Path) -> None:
    """Both fire, and the ledger decides."""
    with SteadyCluster(tmp_path, cadence_s=1.0, POLLER_LEADER_ELECTION="false") as cluster:
        cluster.start_worker()
        for _ in range(2):
            cluster.start_beat(POLLER_LOG_LEVEL="DEBUG")
        cluster.started()
        soon(
            lambda: all("job_fired" in beat.text() for beat in cluster.beats), 30, "both beats fire"
        )
        time.sleep(6)
        verdict = job_chaos.settle(cluster)
        assert verdict.faults == {}
        assert verdict.most_attempts == 1
        ended = Counter(line.plan_ms for line in cluster.lines("ended"))
        assert set(ended.values()) == {1}


def test_a_standby_says_what_it_skips_and_a_killed_leader_does_not_lead(tmp_path: Path) -> None:
    """By name, and in the answer of /api/v1/scheduler at every instant of a failover."""
    with SteadyCluster(tmp_path, cadence_s=1.0) as cluster:
        cluster.start_worker()
        beats = {
            name: cluster.start_beat(POLLER_INSTANCE_ID=name, POLLER_LOG_LEVEL="DEBUG")
            for name in ("north", "south")
        }
        cluster.started()
        old = soon(lambda: _leaders(cluster), 10, "a beat leads")[0]
        [standby] = beats.keys() - {old}

        def skips() -> bool:
            return any(
                "job_skipped" in line and f"instance={standby}" in line and f"job={STEADY}" in line
                for line in beats[standby].text().splitlines()
            )

        soon(skips, 20, "the standby logs what it skips")
        assert "job_skipped" not in beats[old].text().partition("leadership_taken")[2]
        beats[old].kill()
        seen: list[list[str]] = []
        soon(lambda: seen.append(_leaders(cluster)) or seen[-1] == [standby], 15, "it takes over")
        assert all(len(leaders) <= 1 for leaders in seen)
        assert job_chaos.settle(cluster).faults == {}


def _leaders(cluster: SteadyCluster) -> list[str]:
    """The beats that lead, as /api/v1/scheduler has them."""
    redis, keys = cluster.services.redis, cluster.services.keys
    overview = overview_reader.read(redis, keys)
    beats = beat_registry.listing(redis, keys, cluster.services.board.now_ms())
    instances = jobs_json.scheduler(beats, overview)["instances"]
    assert all(each["will_execute_tasks"] == each["is_leader"] for each in instances)
    return [each["instance_id"] for each in instances if each["is_leader"]]
