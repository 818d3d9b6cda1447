"""Jobs on real workers: planned, run, retried, given back, and taken over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import Celery

from poller.db.jobs import job_catalog, job_history, job_ledger
from poller.domain.jobs.job_run import FailureCode, JobRun, Status
from poller.state.cluster import worker_registry
from tests.acceptance import job_zoo
from tests.acceptance.cluster import Cluster, Program, soon
from tests.acceptance.job_zoo import QUEUE, Line

pytestmark = pytest.mark.timeout(120)


class JobCluster(Cluster):
    """A cluster whose workers have the jobs of the zoo. The test stands in for the leader."""

    def __init__(self, directory: Path, **settings: str) -> None:
        self.zoo = directory / "zoo"
        super().__init__(directory, **{job_zoo.FILE_VARIABLE: str(self.zoo), **settings})
        job_zoo.install(directory / "plugins")
        self.valkey.start()
        self._celery = Celery(broker=self.valkey.url)

    def start_job_worker(self, *words: str, **env: str) -> Program:
        """Start a worker, and wait until it serves the queue of jobs."""
        worker = self.start_worker(*words, **env)
        soon(lambda: self._serves(worker), 60, "the worker serves the queue of jobs")
        return worker

    def _serves(self, worker: Program) -> bool:
        workers = worker_registry.registered(self.services.redis, self.services.keys)
        return any(each.name == worker.name and QUEUE in each.queues for each in workers)

    def fire(self, *names: str) -> None:
        """Have jobs planned, as the leader does."""
        self._celery.send_task("poller.plan_jobs", args=[list(names)], queue=QUEUE)

    def runs(self, job: str) -> list[JobRun]:
        return job_history.runs(self.services.engine, job)

    def ended(self, job: str, status: Status = Status.SUCCESS) -> JobRun | None:
        return next((run for run in self.runs(job) if run.status is status), None)

    def lines(self, job: str, word: str) -> list[Line]:
        return [line for line in job_zoo.lines(self.zoo) if (line.job, line.word) == (job, word)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[JobCluster]:
    with JobCluster(tmp_path) as made:
        yield made


each_pool = pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="threads"),
        pytest.param(["-P", "prefork", "-c", "2"], id="prefork", marks=pytest.mark.long),
        pytest.param(["-P", "solo"], id="solo", marks=pytest.mark.long),
    ],
)


@each_pool
def test_a_fired_job_is_run_once(cluster: JobCluster, words: list[str]) -> None:
    """From the planning to the row; a second firing changes nothing."""
    worker = cluster.start_job_worker(*words)
    soon(lambda: job_catalog.listing(cluster.services.engine), 10, "the jobs are announced")
    cluster.fire("quick", "unheard-of")
    run = soon(lambda: cluster.ended("quick"), 15, "the job is run")
    assert (run.attempt, run.rows_affected, run.error_code) == (1, 3, "")
    assert run.result == {"runner": worker.name}
    assert run.runner == worker.name

    cluster.fire("quick")
    cluster.fire("flaky")
    soon(lambda: cluster.ended("flaky", Status.FAILED), 15, "the other job fails")
    assert len(cluster.runs("quick")) == 1
    failed = cluster.runs("flaky")[0]
    assert failed.error_code == FailureCode.HANDLER_ERROR
    assert failed.message == "ValueError: the first attempt fails"

    cluster.fire("flaky")
    retried = soon(lambda: cluster.ended("flaky"), 15, "the failed job is retried")
    assert (retried.id, retried.attempt) == (failed.id, 2)
    worker.terminate()
    assert worker.wait(20) == 0
    assert "unheard-of" in worker.text()


@each_pool
def test_a_stopping_worker_gives_the_attempt_back(cluster: JobCluster, words: list[str]) -> None:
    """SIGTERM in the handler: another worker runs the plan, as the same attempt."""
    first = cluster.start_job_worker(*words, POLLER_WORKER_DRAIN_S="0.5")
    cluster.fire("ticking")
    soon(lambda: cluster.lines("ticking", "tick"), 15, "the handler runs")
    second = cluster.start_job_worker(POLLER_WORKER_DRAIN_S="0.5")
    first.terminate()
    assert first.wait(15) == 0
    [run] = cluster.runs("ticking")
    assert (run.status, run.error_code) == (Status.FAILED, FailureCode.CANCELED)
    assert run.attempt == 0
    assert run.next_retry_ms is not None
    assert cluster.lines("ticking", "cancelled")

    cluster.fire("ticking")
    soon(lambda: len(cluster.lines("ticking", "began")) == 2, 15, "another worker runs it")
    [run] = cluster.runs("ticking")
    assert (run.status, run.attempt, run.runner) == (Status.RUNNING, 1, second.name)


@each_pool
def test_a_handler_that_blocks_ends_with_its_worker(cluster: JobCluster, words: list[str]) -> None:
    """No cancellation reaches it: its attempt is given back as the process ends."""
    worker = cluster.start_job_worker(*words, POLLER_WORKER_DRAIN_S="0.5")
    cluster.fire("sleeping")
    soon(lambda: cluster.lines("sleeping", "began"), 15, "the handler runs")
    worker.terminate()
    worker.wait(15)
    [run] = cluster.runs("sleeping")
    assert (run.status, run.error_code) == (Status.FAILED, FailureCode.CANCELED), worker.text()
    assert run.attempt == 0
    assert run.next_retry_ms is not None


def test_a_killed_worker_costs_an_attempt(cluster: JobCluster) -> None:
    """kill -9 in the handler: the row is closed when its lease is stale, and retried."""
    first = cluster.start_job_worker()
    cluster.fire("ticking")
    soon(lambda: cluster.lines("ticking", "tick"), 15, "the handler runs")
    first.kill()
    cluster.start_job_worker()
    [closed] = soon(lambda: job_ledger.close_stale(cluster.services.engine), 10, "it is closed")
    assert (closed.status, closed.error_code) == (Status.FAILED, FailureCode.STALE_TIMEOUT)

    cluster.fire("ticking")
    run = soon(lambda: cluster.ended("ticking"), 15, "it is retried")
    assert (run.id, run.attempt) == (closed.id, 2)


def test_a_paused_runner_that_lost_its_lease_writes_nothing(cluster: JobCluster) -> None:
    """SIGSTOP beyond the lease: another worker runs the plan, and the handler is cancelled."""
    first = cluster.start_job_worker()
    cluster.fire("ticking")
    soon(lambda: cluster.lines("ticking", "tick"), 15, "the handler runs")
    first.freeze()
    cluster.start_job_worker()
    soon(lambda: job_ledger.close_stale(cluster.services.engine), 10, "its lease is stale")
    cluster.fire("ticking")
    taken = soon(lambda: cluster.ended("ticking"), 15, "another worker runs it")

    first.thaw()
    soon(lambda: cluster.lines("ticking", "cancelled"), 5, "the first handler is cancelled")
    ticks = len(cluster.lines("ticking", "tick"))
    soon(lambda: "job_lease_lost" in first.text(), 5, "the runner notices the loss")
    time.sleep(0.3)
    assert len(cluster.lines("ticking", "tick")) == ticks
    assert cluster.runs("ticking") == [taken]
    assert first.runs


def test_a_long_job_delays_no_poll_and_no_other_job(tmp_path: Path) -> None:
    """The handlers of all slots but one run for ever; polls keep all of their places."""
    with JobCluster(tmp_path, POLLER_WORKER_JOBS="2") as cluster:
        cluster.add_targets(20, 1.0, 0.2)
        cluster.start_beat()
        cluster.start_job_worker("--concurrency", "1")
        cluster.fire("endless")
        soon(lambda: cluster.lines("endless", "began"), 15, "the endless job runs")
        cluster.fire("quick")
        soon(lambda: cluster.ended("quick"), 10, "the other job is run")
        cluster.all_polled(time.time(), 20)
        assert cluster.runs("endless")[0].status is Status.RUNNING
