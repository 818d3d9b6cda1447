"""The queries of the web role to the rest of the program. The routes get them as one value, so that
tests replace the stores.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from poller import errors
from poller.collectors.registry import Registry
from poller.db.record.stored_rates import RatesRequest, TargetRates
from poller.domain.jobs.job_run import JobRun, Plan
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.presentation.collector_trust import CollectorTrust
from poller.presentation.health import Stores
from poller.presentation.job_states import JobList
from poller.service.cluster.collector_figures import SlowTargets
from poller.service.fleet.age_picture import AgePicture
from poller.service.fleet.fleet_picture import FleetPicture
from poller.service.job_listing import RunsPage, RunsQuery, ShownJob
from poller.state.cluster.beat_registry import BeatInstance
from poller.web.api.job_metrics import JobReading
from poller.web.pages.cluster.collectors_page import CollectorsStatus


def _no_device(name: str, request: RatesRequest) -> Sequence[TargetRates]:
    raise errors.NotFound(f'no device named "{name}"')


def usable_stores(overview: Overview | None, redis_error: str) -> Stores:
    """The stores of a process that only knows whether the board could be read."""
    return Stores(redis_error=redis_error)


def _no_job_list() -> JobList:
    return JobList(0, ())


def _no_job(name: str) -> ShownJob:
    raise errors.NotFound(f'no job named "{name}"', hint="poller jobs")


def _no_runs(query: RunsQuery) -> RunsPage:
    if not query.job:
        return RunsPage((), 0, None)
    raise errors.NotFound(f'no job named "{query.job}"', hint="poller jobs")


def _do_nothing() -> None:
    return None


def _no_row(plan: Plan) -> JobRun | None:
    return None


def _no_beats() -> Sequence[BeatInstance]:
    return ()


def _no_collectors() -> CollectorsStatus:
    return CollectorsStatus(Registry(), CollectorTrust({}, frozenset()), ())


def _no_slow_targets(name: str) -> SlowTargets:
    return SlowTargets()


def _no_times(now_ms: int) -> Mapping[str, QueueTimes]:
    return {}


def _no_jobs() -> Sequence[JobReading]:
    return ()


@dataclass(frozen=True, slots=True)
class BackendQueries:
    """Blocking queries and constants of the web role. Every query but `stores` raises StoreError;
    `rates`, `job` and `job_runs` also raise NotFound.
    """

    overview: Callable[[], Overview]
    #: State of the stores, given the newest overview, or None and why the board cannot be read.
    stores: Callable[[Overview | None, str], Stores] = usable_stores
    links: Mapping[str, str] = field(default_factory=dict)  # title -> URL, in the page header
    rates: Callable[[str, RatesRequest], Sequence[TargetRates]] = _no_device  # of a device
    collectors: Callable[[], CollectorsStatus] = _no_collectors
    slow_targets: Callable[[str], SlowTargets] = _no_slow_targets  # of a collector
    job_readings: Callable[[], Sequence[JobReading]] = _no_jobs  # for the metrics
    jobs: Callable[[], JobList] = _no_job_list
    expire_jobs: Callable[[], None] = _do_nothing  # after a change: `jobs` is read again
    job: Callable[[str], ShownJob] = _no_job  # by name
    job_runs: Callable[[RunsQuery], RunsPage] = _no_runs
    job_row: Callable[[Plan], JobRun | None] = _no_row  # of a plan, if it has one
    fleet: Callable[[], FleetPicture] = FleetPicture  # why targets fail, and where
    ages: Callable[[], AgePicture] = AgePicture  # how old the data of targets are
    beats: Callable[[], Sequence[BeatInstance]] = _no_beats  # the living ones
    queue_times: Callable[[int], Mapping[str, QueueTimes]] = _no_times  # at an instant in ms
    process_metrics: Callable[[], bytes] = bytes  # of the processes of this host, as text
