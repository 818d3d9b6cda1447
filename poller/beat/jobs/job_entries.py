"""RedBeat's entries of jobs: made from the catalogue, and kept in step with it.

An entry is due when the next plan of its job may be attempted, by the database's clock. The
schedule that RedBeat's tools show is for the eye: it has no time zone and no delay.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from celery.schedules import ParseException, crontab, schedule
from redbeat.decoder import RedBeatJSONEncoder

from poller.beat.jobs import job_messages
from poller.domain.jobs import job_schedule, wall_clock
from poller.domain.jobs.job_schedule import Cadence, Schedule
from poller.domain.jobs.job_terms import LONGEST_S
from poller.state.cluster.entry_records import EntryRecord, EntryRecords

#: How often the records of all entries are compared, in case another program changed one.
COMPARE_S = 60.0
#: An instant that is later than the next plan by more than this was not set by a leader.
TOLERANCE_S = 0.002
_DAY_S = 86_400.0
_LONGEST_MS = round(LONGEST_S * 1000)


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A job as the leader fires it: its schedule decides when, its queue where to."""

    name: str
    queue: str
    schedule: Schedule
    delay_ms: int = 0

    def latest_s(self, now_ms: int) -> float:
        """The newest instant, not after now, at which the job was due."""
        return self._due_s(_latest_ms(self.schedule, now_ms - self.delay_ms))

    def next_s(self, now_ms: int) -> float:
        """The first instant after now at which the job is due."""
        return self._due_s(_next_ms(self.schedule, now_ms - self.delay_ms))

    def _due_s(self, plan_ms: int) -> float:
        return (plan_ms + self.delay_ms) / 1000


# Many jobs share a schedule, and an instant of cron is costly.
@lru_cache(maxsize=256)
def _latest_ms(job: Schedule, now_ms: int) -> int:
    return job.latest_ms(now_ms)


@lru_cache(maxsize=256)
def _next_ms(job: Schedule, after_ms: int) -> int:
    return job.next_ms(after_ms)


class JobEntries:
    """The leader's entries. Every method raises StoreError."""

    def __init__(self, records: EntryRecords) -> None:
        self._records = records
        self._written: dict[str, EntryRecord] = {}  # as far as this process knows
        self._compare_mono = 0.0  # when all records are compared next
        self._plausible: dict[str, float] = {}  # instants that were checked
        self._synced_ms = 0

    def forget(self) -> None:
        """Start a new term: another leader may have written entries."""
        self._written = {}
        self._plausible = {}
        self._compare_mono = 0.0

    def sync(self, jobs: Sequence[JobEntry], now_ms: int) -> bool:
        """Make the entries equal to the jobs. Writes differences only. Returns whether it wrote.

        A new entry is due at once: a plan may have passed while it was missing.
        """
        if now_ms < self._synced_ms:
            self._plausible = {}  # the clock was set back
        self._synced_ms = now_ms
        wanted = {self._records.key(job.name): job for job in jobs}
        instants = self._records.instants()
        stored = self._stored(instants)

        created: dict[str, EntryRecord] = {}
        changed: dict[str, EntryRecord] = {}
        due: dict[str, float] = {}
        for key, job in wanted.items():
            record = record_of(job)
            if key not in instants or stored.get(key) is None:
                created[key] = record
                due[key] = job.latest_s(now_ms)
            elif stored[key] != record:
                changed[key] = record
                due[key] = job.next_s(now_ms)
            elif not self._is_plausible(key, instants[key], job, now_ms):
                due[key] = job.next_s(now_ms)
        removed = instants.keys() - wanted.keys()

        if due or removed:
            self._records.write(created, changed, due, removed)
        self._written = {key: record_of(job) for key, job in wanted.items()}
        return bool(due or removed)

    def _stored(self, instants: Mapping[str, float]) -> Mapping[str, EntryRecord | None]:
        """The records of the entries in the schedule, from memory most of the time."""
        if time.monotonic() < self._compare_mono and instants.keys() == self._written.keys():
            return self._written
        self._compare_mono = time.monotonic() + COMPARE_S
        return self._records.stored(list(instants))

    def _is_plausible(self, key: str, instant_s: float, job: JobEntry, now_ms: int) -> bool:
        """Whether the instant is due or near: a clock that was set back would delay the job."""
        if instant_s < 0:
            return False  # RedBeat ignores the entry
        if instant_s <= now_ms / 1000 or self._plausible.get(key) == instant_s:
            return True
        is_plausible = instant_s <= job.next_s(now_ms) + TOLERANCE_S
        if is_plausible:
            self._plausible[key] = instant_s
        return is_plausible


@lru_cache(maxsize=10_000)
def record_of(job: JobEntry) -> EntryRecord:
    """The records of an entry."""
    definition = {
        "name": f"job:{job.name}",
        "task": job_messages.TASK,
        "args": [[job.name]],
        "kwargs": {},
        "options": {"queue": job.queue},
        "schedule": _shown_schedule(job.schedule),
        "enabled": True,
    }
    terms = {
        "name": job.name,
        "queue": job.queue,
        "schedule": job.schedule.to_json(),
        "delay_ms": job.delay_ms,
    }
    return EntryRecord(json.dumps(definition, cls=RedBeatJSONEncoder), json.dumps(terms))


@lru_cache(maxsize=10_000)
def parse(text: str) -> JobEntry | None:
    """The entry of a record; None for a record that no leader wrote."""
    try:
        terms = json.loads(text)
        job = JobEntry(
            name=str(terms["name"]),
            queue=str(terms["queue"]),
            schedule=job_schedule.from_json(terms["schedule"]),
            delay_ms=int(terms["delay_ms"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return None
    is_possible = 0 <= job.delay_ms <= _LONGEST_MS and _can_be_planned(job.schedule)
    return job if is_possible else None


def _can_be_planned(job: Schedule) -> bool:
    if isinstance(job, Cadence):
        return 0 < job.every_ms <= _LONGEST_MS
    return not wall_clock.fault(job.expression, job.timezone)


def _shown_schedule(job: Schedule) -> Any:
    """The schedule for RedBeat's tools. Celery does not know all that cron does."""
    if isinstance(job, Cadence):
        return schedule(run_every=job.every_ms / 1000)
    minute, hour, day, month, weekday = job.expression.split()
    try:
        return crontab(
            minute=minute, hour=hour, day_of_month=day, month_of_year=month, day_of_week=weekday
        )
    except (ParseException, ValueError):
        return schedule(run_every=_DAY_S)


def meta(text: str, fired_ms: int) -> str:
    """RedBeat's record of the last run, after one more run."""
    try:
        count = json.loads(text)["total_run_count"]
    except (KeyError, TypeError, ValueError, RecursionError):
        count = 0
    runs = count + 1 if type(count) is int else 1
    return f'{{"last_run_at": {_instant(fired_ms)}, "total_run_count": {runs}}}'


@lru_cache(maxsize=8)
def _instant(at_ms: int) -> str:
    return json.dumps(datetime.fromtimestamp(at_ms / 1000, UTC), cls=RedBeatJSONEncoder)
