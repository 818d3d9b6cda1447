"""Jobs that hang, want to end the process, end it, or never list their scopes: other jobs and polls
go on, and the ledger says what happened.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from poller.db.jobs import job_history
from poller.domain.jobs.job_run import FailureCode, JobRun, Status
from tests.acceptance import rogue_jobs
from tests.acceptance.cluster import Cluster, soon

pytestmark = [pytest.mark.alone, pytest.mark.timeout(150)]

ROGUES = ("hang", "leave", "lost")


def runs(cluster: Cluster, job: str, since: float = 0.0) -> list[JobRun]:
    found = job_history.runs(cluster.services.engine, job, limit=1_000)
    return [run for run in found if run.plan.plan_ms >= since * 1000]


def succeeded(cluster: Cluster, job: str, since: float = 0.0) -> int:
    return sum(run.status is Status.SUCCESS for run in runs(cluster, job, since))


def test_rogue_jobs_harm_only_themselves(tmp_path: Path) -> None:
    """One worker with two job slots and all of them; the job that hangs has many plans."""
    gates = tmp_path / "gates"
    gates.mkdir()
    settings = {rogue_jobs.DIRECTORY_VARIABLE: str(gates), "POLLER_WORKER_JOBS": "2"}
    with Cluster(tmp_path, **settings) as cluster:
        rogue_jobs.install(cluster.directory / "plugins", *ROGUES)
        cluster.valkey.start()
        cluster.add_targets(10, 1.0)
        cluster.start_beat()
        worker = cluster.start_worker()
        soon(
            lambda: all(succeeded(cluster, job) for job in (*ROGUES, "harmless")),
            60,
            "all jobs run",
        )
        for job in ROGUES:
            (gates / job).touch()
        struck = time.time()

        def has_hung() -> JobRun | None:
            failed = [run for run in runs(cluster, "hang", struck - 2) if run.error_code]
            return failed[0] if failed else None

        failed = soon(has_hung, 30, "the run that hangs is over")
        assert failed.error_code == FailureCode.RUN_TIMEOUT
        assert "did not end within" in failed.message
        soon(lambda: "job_refused" in worker.text(), 20, "the job that hangs is refused")
        assert "rogue_jobs.py" in worker.text()  # where it hangs

        [left] = {run.error_code for run in runs(cluster, "leave", struck) if run.error_code}
        assert left == FailureCode.HANDLER_PANIC
        later = time.time()
        soon(lambda: succeeded(cluster, "harmless", later) >= 2, 20, "the other job goes on")
        cluster.all_polled(later, 20)
        assert len(runs(cluster, "lost", later)) == 0
        assert worker.runs
        worker.terminate()
        assert worker.wait(20) == 0


def test_a_job_that_ends_its_worker_is_held_back_after_three_attempts(tmp_path: Path) -> None:
    """Then polls go on. A run by hand that succeeds releases it."""
    gates = tmp_path / "gates"
    gates.mkdir()
    settings = {rogue_jobs.DIRECTORY_VARIABLE: str(gates), "POLLER_JOB_TICK_S": "1"}
    with Cluster(tmp_path, **settings) as cluster:
        rogue_jobs.install(cluster.directory / "plugins", "end")
        cluster.valkey.start()
        cluster.add_targets(10, 1.0)
        gate = gates / "end"
        gate.touch()
        cluster.start_up()

        def losses() -> int:
            found = job_history.summaries(cluster.services.engine).get("end")
            return found.losses if found else 0

        soon(lambda: losses() >= 3, 90, "the job is held back")
        later = time.time()
        soon(lambda: succeeded(cluster, "harmless", later) >= 3, 30, "the other job goes on")
        cluster.all_polled(later, 20)
        assert sum(run.attempt for run in runs(cluster, "end")) == 3
        assert "its runner was lost 3 times in a row" in cluster.run("status").stdout
        assert cluster.run("events").stdout.count("job_held_back") == 1

        gate.unlink()
        done = cluster.run("jobs", "run", "end")
        assert done.returncode == 0, done.stdout + done.stderr
        soon(lambda: succeeded(cluster, "end") >= 2, 20, "it is planned again")
