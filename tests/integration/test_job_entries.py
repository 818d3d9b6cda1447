"""RedBeat's entries of jobs on a real server: in step with the catalogue, fired by the tick."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.schedules import crontab
from redbeat.schedulers import RedBeatSchedulerEntry
from structlog.testing import capture_logs

from poller.beat.jobs.job_entries import JobEntries, JobEntry
from poller.beat.scheduler import PollScheduler
from poller.bootstrap import Services
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.state.cluster.entry_records import EntryRecords
from tests.integration import job_beats
from tests.integration.job_beats import QUEUE, Beats, sent, set_clock, tick

MINUTE = Cadence(60_000)
NOW_MS = 1_800_000_030_000  # half a minute after a plan


@pytest.fixture
def beats(services: Services) -> Iterator[Beats]:
    with job_beats.running(services) as made:
        yield made


@pytest.fixture
def celery_app(beats: Beats) -> Celery:
    return beats.app


@pytest.fixture
def records(services: Services) -> EntryRecords:
    return EntryRecords(services.redis, services.keys)


@pytest.fixture
def entries(records: EntryRecords) -> JobEntries:
    return JobEntries(records)


@pytest.fixture
def make_beat(beats: Beats) -> Callable[[], PollScheduler]:
    """A beat without threads. It fires jobs by the clock that the test sets."""
    return beats.make


def job(name: str, schedule: Cadence | Cron = MINUTE, delay_ms: int = 0) -> JobEntry:
    return JobEntry(name, QUEUE, schedule, delay_ms)


def test_stock_redbeat_reads_an_entry(
    celery_app: Celery, make_beat: Callable[[], PollScheduler], entries: JobEntries
) -> None:
    """Its tools show task, arguments, queue and schedule."""
    make_beat()  # gives RedBeat its client
    nightly = Cron("0 2 * * 1-5", "Europe/Amsterdam")
    entries.sync([job("audit"), job("nightly", nightly), job("odd", Cron("0 2 L * *"))], NOW_MS)
    read = {
        name: RedBeatSchedulerEntry.from_key(f"poller:redbeat:job:{name}", app=celery_app)
        for name in ("audit", "nightly", "odd")
    }
    audit = read["audit"]
    assert (audit.name, audit.task) == ("job:audit", "poller.plan_jobs")
    assert (audit.args, audit.options["queue"]) == ([["audit"]], QUEUE)
    assert audit.schedule.run_every.total_seconds() == 60
    assert read["nightly"].schedule == crontab(minute="0", hour="2", day_of_week="1-5")
    assert read["odd"].last_run_at is None


def test_entries_follow_the_catalogue(
    services: Services, records: EntryRecords, entries: JobEntries
) -> None:
    """Only differences are written; a changed job keeps its last run, a removed one is gone."""
    assert entries.sync([job("a"), job("b")], NOW_MS)
    key_a, key_b = records.key("a"), records.key("b")
    latest_s = NOW_MS // 60_000 * 60
    assert records.instants() == {key_a: latest_s, key_b: latest_s}  # a new one is due at once
    services.redis.hset(key_a, "meta", '{"last_run_at": null, "total_run_count": 7}')
    services.redis.zadd(services.keys.schedule, {key_a: latest_s + 60, key_b: latest_s + 60})
    assert not entries.sync([job("a"), job("b")], NOW_MS)

    assert entries.sync([job("a", Cadence(3_600_000), delay_ms=5_000)], NOW_MS)
    next_s = (NOW_MS // 3_600_000 + 1) * 3_600 + 5
    assert records.instants() == {key_a: next_s}
    assert "7" in str(services.redis.hget(key_a, "meta"))
    assert not services.redis.exists(key_b)


def test_a_flushed_server_gets_its_entries_back(
    services: Services, records: EntryRecords, entries: JobEntries
) -> None:
    """They are due at once: a plan may have passed meanwhile."""
    entries.sync([job("a"), job("b")], NOW_MS)
    services.redis.flushall()
    assert entries.sync([job("a"), job("b")], NOW_MS)
    assert len(records.instants()) == 2
    assert all(instant <= NOW_MS / 1000 for instant in records.instants().values())


@pytest.mark.parametrize("instant_s", [NOW_MS / 1000 + 3_600, -1], ids=["far", "ignored"])
def test_an_instant_that_no_leader_set_is_corrected(
    services: Services, records: EntryRecords, entries: JobEntries, instant_s: float
) -> None:
    """Also those from before the database's clock was set back."""
    entries.sync([job("a")], NOW_MS)
    services.redis.zadd(services.keys.schedule, {records.key("a"): instant_s})
    assert entries.sync([job("a")], NOW_MS)
    assert records.instants()[records.key("a")] == (NOW_MS // 60_000 + 1) * 60


@pytest.mark.parametrize(
    "damage", ["missing", "wrong type", "not JSON", "impossible", "infinite", "late for ever"]
)
def test_a_damaged_entry_stops_no_tick_and_is_written_anew(
    services: Services,
    records: EntryRecords,
    entries: JobEntries,
    make_beat: Callable[[], PollScheduler],
    damage: str,
) -> None:
    beat = make_beat()
    entries.sync([job("a"), job("b")], NOW_MS)
    key = records.key("a")
    if damage in ("missing", "wrong type"):
        services.redis.delete(key)
    if damage == "wrong type":
        services.redis.set(key, "another program's")
    if damage == "not JSON":
        services.redis.hset(key, mapping={"job": "{", "meta": "["})
    if damage == "impossible":
        terms = {"name": "a", "queue": QUEUE, "schedule": {"every_ms": 0}, "delay_ms": 0}
        services.redis.hset(key, "job", json.dumps(terms))
    if damage == "infinite":
        terms = {"name": "a", "queue": QUEUE, "schedule": {"every_ms": 1e999}, "delay_ms": 0}
        services.redis.hset(key, "job", json.dumps(terms))
    if damage == "late for ever":
        cron = {"cron": "* * * * *", "timezone": "UTC"}
        terms = {"name": "a", "queue": QUEUE, "schedule": cron, "delay_ms": 10**18}
        services.redis.hset(key, "job", json.dumps(terms))

    set_clock(beat, NOW_MS)
    tick(beat)
    assert sent(services.redis) == [["b"]]
    assert beat._leader.leads
    assert entries.sync([job("a"), job("b")], NOW_MS)
    tick(beat)
    assert sent(services.redis) == [["a"]]


def test_due_jobs_are_fired_together_and_have_their_next_instant(
    services: Services,
    celery_app: Celery,
    entries: JobEntries,
    make_beat: Callable[[], PollScheduler],
) -> None:
    """At most 200 names a message, one message for each queue; RedBeat's records are kept."""
    beat = make_beat()
    jobs = [job(f"job-{number:03}") for number in range(450)]
    other = JobEntry("other", "job.other", Cron("*/5 * * * *"))
    entries.sync([*jobs, other], NOW_MS)
    set_clock(beat, NOW_MS)
    tick(beat)
    assert [len(names) for names in sent(services.redis)] == [200, 200, 50]
    assert sent(services.redis, "job.other") == [["other"]]
    tick(beat)
    assert sent(services.redis) == []

    read = RedBeatSchedulerEntry.from_key("poller:redbeat:job:job-000", app=celery_app)
    assert 0 <= read.last_run_at.timestamp() - NOW_MS / 1000 < 10
    assert read.total_run_count == 1
    set_clock(beat, (NOW_MS // 60_000 + 1) * 60_000)
    tick(beat)
    assert sum(len(names) for names in sent(services.redis)) == 450


def test_the_clock_of_the_leader_does_not_matter(
    services: Services,
    entries: JobEntries,
    make_beat: Callable[[], PollScheduler],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten minutes ahead or behind: a job is fired when the database says so."""
    beat = make_beat()
    now_ms = time.time_ns() // 1_000_000
    entries.sync([job("a", Cadence(3_600_000))], now_ms)
    set_clock(beat, now_ms)
    tick(beat)
    assert sent(services.redis) == [["a"]]
    next_ms = (now_ms // 3_600_000 + 1) * 3_600_000
    real = time.time
    for offset_s in (-600, 600):
        monkeypatch.setattr(time, "time", lambda offset_s=offset_s: real() + offset_s)
        set_clock(beat, next_ms - 1_500)
        tick(beat)
        assert sent(services.redis) == []
        set_clock(beat, next_ms)
        tick(beat)
        assert sent(services.redis) == [["a"]]
        next_ms += 3_600_000


def test_the_leader_pauses_until_the_next_job(
    services: Services, entries: JobEntries, make_beat: Callable[[], PollScheduler]
) -> None:
    """A job is not late by up to a tick."""
    beat = make_beat()
    plan_ms = NOW_MS // 60_000 * 60_000 + 60_000
    entries.sync([job("a")], NOW_MS)
    set_clock(beat, NOW_MS)
    tick(beat)
    set_clock(beat, plan_ms - 2_000)
    tick(beat)
    assert 1.5 < beat._entries.pause_s() <= 2.0
    sent(services.redis)
    set_clock(beat, plan_ms - 100)
    beat._wakeup.clear()
    beat.tick()  # pauses less than tick_s
    tick(beat)
    assert sent(services.redis) == [["a"]]


def test_entries_of_other_people_run_through_redbeat(
    services: Services,
    celery_app: Celery,
    entries: JobEntries,
    make_beat: Callable[[], PollScheduler],
) -> None:
    """Each at its time and once, beside jobs; a damaged one is logged and stops nothing."""
    beat = make_beat()
    tick(beat)
    yesterday = datetime.now(UTC) - timedelta(days=1)
    RedBeatSchedulerEntry(
        "theirs", "their.task", 3600, app=celery_app, last_run_at=yesterday
    ).save()
    key = services.keys.entry("damaged")
    services.redis.set(key, "no hash")
    services.redis.zadd(services.keys.schedule, {key: 1, "poller:redbeat:off": -1})
    entries.sync([job("a")], NOW_MS)
    set_clock(beat, NOW_MS)
    with capture_logs() as lines:
        for _ in range(3):
            beat._entries._others_mono = 0.0
            tick(beat)
    tasks = [
        json.loads(str(text))["headers"]["task"] for text in services.redis.lrange("poller", 0, -1)
    ]
    assert tasks.count("their.task") == 1
    assert sent(services.redis) == [["a"]]
    names = [line["event"] for line in lines]
    assert names.count("entry_damaged") == 1
    assert "tick_failed" not in names


def test_an_entry_that_fell_due_without_a_leader_is_fired_at_takeover(
    services: Services, entries: JobEntries, make_beat: Callable[[], PollScheduler]
) -> None:
    first, second = make_beat(), make_beat()
    assert first is not second
    entries.sync([job("a")], NOW_MS)
    for beat, minutes in ((first, 0), (second, 3)):
        set_clock(beat, NOW_MS + minutes * 60_000)
        tick(beat)
        assert sent(services.redis) == [["a"]]
        beat._leader.stop()


def test_celerys_own_entry_and_former_static_ones_are_removed(
    services: Services, celery_app: Celery, make_beat: Callable[[], PollScheduler]
) -> None:
    """A server on which an earlier release led."""
    beat = make_beat()
    for name in ("celery.backend_cleanup", "former"):
        RedBeatSchedulerEntry(name, "their.task", 3600, app=celery_app).save()
    services.redis.sadd("poller:redbeat::statics", "former")
    tick(beat)
    assert not services.redis.exists("poller:redbeat:celery.backend_cleanup")
    assert not services.redis.exists("poller:redbeat:former")
    members = services.redis.zrange(services.keys.schedule, 0, -1)
    assert not [key for key in members if "cleanup" in key or "former" in key]


def test_a_schedule_of_a_wrong_type_is_set_aside(
    services: Services, entries: JobEntries, make_beat: Callable[[], PollScheduler]
) -> None:
    """The next pass writes the entries anew."""
    beat = make_beat()
    tick(beat)
    services.redis.delete(services.keys.schedule)
    services.redis.set(services.keys.schedule, "another program's")
    set_clock(beat, NOW_MS)
    tick(beat)
    assert services.redis.type(services.keys.schedule) == "none"
    entries.sync([job("a")], NOW_MS)
    beat._entries._retry_mono = 0.0
    tick(beat)
    assert sent(services.redis) == [["a"]]
