"""Jobs, their runs and the scheduler as JSON, in the schemas of `poller jobs list --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation import formatting, job_json
from poller.presentation.job_json import jsonable
from poller.presentation.job_states import JobList
from poller.service import job_listing
from poller.service.job_listing import RunsPage, ShownJob
from poller.state.cluster.beat_registry import BeatInstance


def jobs(read: JobList) -> dict[str, Any]:
    """All jobs."""
    return {
        "schema": "poller.jobs/1",
        "as_of": formatting.instant(read.as_of_ms),
        "items": [jsonable(job_json.item(each)) for each in read.jobs],
        "total": len(read.jobs),
        "broken": [jsonable(asdict(each)) for each in read.broken],
    }


def job(shown: ShownJob) -> dict[str, Any]:
    """One job in full."""
    as_of = formatting.instant(shown.listed.as_of_ms)
    return {"schema": "poller.jobs.show/1", "as_of": as_of, **jsonable(job_listing.document(shown))}


def runs(page: RunsPage) -> dict[str, Any]:
    """A page of runs. `next` is the `before_id` of the next page; None: this is the last."""
    return {
        "schema": "poller.jobs.history/1",
        "as_of": formatting.instant(page.as_of_ms),
        "items": [jsonable(item) for item in page.items()],
        "next": page.next_id,
    }


def scheduler(beats: Sequence[BeatInstance], overview: Overview) -> dict[str, Any]:
    """The living beats, and the leader that holds the lock.

    The lock decides which of them leads: the entry of a leader that was killed or frozen says for
    some seconds that it does.
    """
    leader = overview.leader
    name = leader.name if leader else None
    return {
        "schema": "poller.scheduler/1",
        "as_of": formatting.instant(overview.as_of_ms),
        "leader": name,
        "epoch": leader.epoch if leader else None,
        "instances": [_instance(beat, name) for beat in beats],
    }


def scope(kind: str, key: str) -> tuple[str, str] | None:
    """The scope of two parameters; None without them. Raises InvalidInput for one alone."""
    if bool(kind) != bool(key):
        raise errors.InvalidInput("give scope_kind and scope_id together")
    return (kind, key) if kind else None


def _instance(beat: BeatInstance, leader: str | None) -> dict[str, Any]:
    is_leader = beat.instance == leader if beat.election else beat.leads
    return {
        "instance_id": beat.instance,
        "process": beat.process,
        "registered_tasks": beat.jobs,
        "leader_election_enabled": beat.election,
        "is_leader": is_leader,
        "will_execute_tasks": is_leader or not beat.election,
        "seen": formatting.instant(beat.seen_ms),
    }
