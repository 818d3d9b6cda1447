"""The leader's thread for jobs on real Redis and SQL: entries, retries, stale runs, events."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from poller import bootstrap, errors
from poller.beat.jobs import job_thread
from poller.beat.scheduler import PollScheduler
from poller.bootstrap import Services
from poller.db import database_clock, tables
from poller.db.jobs import job_catalog, job_ledger
from poller.db.jobs.job_ledger import Claimed
from poller.domain.jobs.job_run import FailureCode, Plan
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.jobs.run_totals import RunOutcome
from poller.state.cluster import beat_registry, event_stream, job_totals
from tests.integration import job_beats
from tests.integration.job_beats import QUEUE, Beats, sent, serve, tick

HOUR_MS = 3_600_000


def terms(name: str, every_ms: int = HOUR_MS, **values: object) -> JobTerms:
    return JobTerms(name, Cadence(every_ms), **values)  # type: ignore[arg-type]


@pytest.fixture
def beats(services: Services) -> Iterator[Beats]:
    with job_beats.running(services) as made:
        yield made


@pytest.fixture
def beat(services: Services, beats: Beats) -> PollScheduler:
    """A leader with a worker and the jobs a and b, after its first pass. Nothing is due."""
    announce(services, terms("a"), terms("b"))
    serve(services)
    made = beats.make()
    tick(made)
    run(made)
    tick(made)
    sent(services.redis)
    return made


def announce(services: Services, *jobs: JobTerms, queue: str = QUEUE) -> None:
    job_catalog.announce(services.engine, queue, "poller 1.0", jobs)


def run(beat: PollScheduler) -> None:
    """One pass of the thread."""
    beat._jobs.run_once()


def entries(beat: PollScheduler) -> set[str]:
    """The names of jobs with an entry."""
    first = beat._services.keys.job_entry("")
    return {key.removeprefix(first) for key in beat._records.instants()}


def events(beat: PollScheduler) -> list[tuple[str, str]]:
    """Kind and job of the events so far, oldest first."""
    beat._events._publish()
    services = beat._services
    found = event_stream.newest(services.redis, services.keys, 100)
    told = [entry.event for entry in reversed(found) if entry.event]
    return [(event.kind.value, event.data["job"]) for event in told if "job" in event.data]


def last_text(beat: PollScheduler) -> str:
    """The text of the last event."""
    beat._events._publish()
    [entry] = event_stream.newest(beat._services.redis, beat._services.keys, 1)
    assert entry.event is not None
    return entry.event.message


def claim(services: Services, job: JobTerms) -> tuple[Plan, int, str]:
    now_ms = database_clock.now_ms(services.engine)
    plan = Plan(job.name, "global", "global", job.schedule.latest_ms(now_ms))
    claimed = job_ledger.claim(services.engine, plan, job, "w1", now_ms)
    assert claimed.outcome in (Claimed.WON, Claimed.STOLEN)
    return plan, claimed.run_id, claimed.token


def test_served_jobs_have_entries(
    services: Services, beat: PollScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paused jobs have none, and those whose package no worker has."""
    announce(services, terms("c"), queue="job.other")
    run(beat)
    assert entries(beat) == {"a", "b"}
    job_catalog.pause(services.engine, "a", "me")
    serve(services, "job.other", name="w2")
    run(beat)
    assert entries(beat) == {"b", "c"}
    job_catalog.resume(services.engine, "a")
    run(beat)
    assert entries(beat) == {"a", "b", "c"}

    services.redis.hdel(services.keys.workers, "w2")
    run(beat)
    assert entries(beat) == {"a", "b", "c"}  # its heartbeat may come back, as after a flush
    beat._jobs._queues._until_mono["job.other"] = 0.0
    run(beat)
    assert entries(beat) == {"a", "b"}


def test_after_a_step_of_the_clock_no_entry_is_lost(
    services: Services, beat: PollScheduler
) -> None:
    """No heartbeat counts until all are renewed."""
    services.redis.delete(services.keys.workers)
    beat._jobs._queues._until_mono.clear()
    beat._workers_unsure_until_mono = time.monotonic() + 60
    run(beat)
    assert entries(beat) == {"a", "b"}


def test_a_flushed_server_has_its_entries_after_one_pass(
    services: Services, beat: PollScheduler
) -> None:
    """All jobs are fired then: a plan may have passed meanwhile."""
    services.redis.flushall()
    run(beat)
    assert entries(beat) == {"a", "b"}
    tick(beat)
    assert sent(services.redis) == [["a", "b"]]


def test_a_due_retry_fires_its_job(services: Services, beat: PollScheduler) -> None:
    job = terms("a", retry_delays_s=(0.0,))
    announce(services, job, terms("b"))
    _, run_id, token = claim(services, job)
    run(beat)
    sent(services.redis)
    job_ledger.fail(services.engine, run_id, token, FailureCode.HANDLER_ERROR, "no", 0.0)
    run(beat)
    assert sent(services.redis) == [["a"]]


def test_a_stale_run_is_closed_and_counted(services: Services, beat: PollScheduler) -> None:
    """Also that of a job whose workers are all gone; it is fired for its next attempt."""
    _, run_id, _ = claim(services, terms("a"))
    with services.engine.begin() as conn:
        conn.execute(sa.update(tables.job_runs).values(stale_ms=1, heartbeat_ms=0))
    run(beat)
    with services.engine.begin() as conn:
        row = conn.execute(sa.select(tables.job_runs)).one()
    assert (row.id, row.status, row.error_code) == (run_id, "FAILED", "stale_timeout")
    totals = job_totals.read(services.redis, services.keys)
    assert totals["a"].outcomes[RunOutcome.STALE] == 1
    assert sent(services.redis) == [["a"]]


def test_a_job_whose_runner_is_lost_again_and_again_is_held_back(
    services: Services, beat: PollScheduler
) -> None:
    """It has no entry and is not fired, until its pause is over or a run by hand succeeds."""
    job = terms("a", every_ms=60_000, max_attempts=2)
    announce(services, job, terms("b"))
    latest_ms = job.schedule.latest_ms(database_clock.now_ms(services.engine))
    plans = [Plan("a", "global", "global", latest_ms - 60_000 * back) for back in (2, 1, 0)]

    def attempt(plan: Plan) -> job_ledger.Claim:
        claim = job_ledger.claim(services.engine, plan, job, "w1", plan.plan_ms)
        assert claim.outcome in (Claimed.WON, Claimed.STOLEN)
        return claim

    def lose(plan: Plan) -> None:
        attempt(plan)
        with services.engine.begin() as conn:
            conn.execute(sa.update(tables.job_runs).values(stale_ms=1))
        run(beat)

    def edit(**values: int) -> None:
        with services.engine.begin() as conn:
            conn.execute(sa.update(tables.job_runs).values(**values))

    lose(plans[0])
    lose(plans[0])
    run(beat)
    assert entries(beat) == {"a", "b"}
    sent(services.redis)
    beat._jobs._fire_all_mono = 0.0
    lose(plans[1])  # it has an attempt left, which is due
    assert entries(beat) == {"b"}
    assert sent(services.redis) == [["b"]]
    run(beat)
    assert events(beat)[2:] == [("job_failed", "a"), ("job_held_back", "a")]

    six_minutes_ago = database_clock.now_ms(services.engine) - 6 * 60_000
    edit(finished_ms=six_minutes_ago)
    run(beat)
    assert entries(beat) == {"a", "b"}
    assert sent(services.redis) == [["a"]]
    lose(plans[1])
    edit(finished_ms=six_minutes_ago)  # the next pause is twice as long
    run(beat)
    assert entries(beat) == {"b"}
    assert sent(services.redis) == []

    claim = attempt(plans[2])
    job_ledger.succeed(services.engine, claim.run_id, claim.token, 1, {})
    run(beat)
    assert entries(beat) == {"a", "b"}
    assert events(beat)[4:] == [("job_recovered", "a")]


def test_all_jobs_are_fired_now_and_then(services: Services, beat: PollScheduler) -> None:
    """A message may be lost; the workers find in the ledger what is due."""
    run(beat)
    assert sent(services.redis) == []
    beat._jobs._fire_all_mono = 0.0
    run(beat)
    assert sent(services.redis) == [["a", "b"]]
    run(beat)
    assert sent(services.redis) == []


def test_a_full_queue_gets_no_further_messages(
    services: Services, beat: PollScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither from the thread nor from the tick; the entries go on."""
    monkeypatch.setattr(job_thread, "FULL_QUEUE", 2)
    services.redis.lpush(QUEUE, "1", "2", "3")
    beat._jobs._fire_all_mono = 0.0
    run(beat)
    services.redis.zadd(services.keys.schedule, {services.keys.job_entry("a"): 1})
    tick(beat)
    assert services.redis.lrange(QUEUE, 0, -1) == ["3", "2", "1"]
    assert beat._records.instants()[services.keys.job_entry("a")] > time.time()

    services.redis.delete(QUEUE)
    beat._jobs._fire_all_mono = 0.0
    run(beat)
    assert sent(services.redis) == [["a", "b"]]


def test_events_tell_each_change_once(
    services: Services, beats: Beats, beat: PollScheduler
) -> None:
    """A new leader neither repeats an event nor leaves one out."""
    assert events(beat) == [("job_added", "a"), ("job_added", "b")]
    job = terms("a", retry_delays_s=())
    announce(services, job, terms("b"))
    _, run_id, token = claim(services, job)
    job_ledger.fail(services.engine, run_id, token, FailureCode.HANDLER_ERROR, "no disk", 60.0)
    run(beat)
    run(beat)
    assert events(beat)[2:] == [("job_failed", "a")]
    assert re.search(r"the next one at \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$", last_text(beat))

    beat._leader.stop()
    successor = beats.make()
    tick(successor)
    run(successor)
    assert events(successor)[3:] == []
    plan = Plan("a", "global", "global", database_clock.now_ms(services.engine))
    claimed = job_ledger.claim(services.engine, plan, job, "w1", plan.plan_ms)
    job_ledger.succeed(services.engine, claimed.run_id, claimed.token, 1, {})
    run(successor)
    assert events(successor)[3:] == [("job_recovered", "a")]

    announce(services, job)
    run(successor)
    announce(services, job, terms("b"))
    run(successor)
    assert events(successor)[4:] == [("job_vanished", "b"), ("job_added", "b")]

    for fault in ("scopes: no route", ""):
        job_catalog.note_planning(services.engine, "a", fault)
        run(successor)
    assert events(successor)[6:] == [("job_failed", "a"), ("job_recovered", "a")]


def test_a_job_without_workers_goes_overdue_and_then_vanishes(
    services: Services, beat: PollScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is overdue as soon as it should have run, and gone after a day."""
    services.redis.delete(services.keys.workers)
    beat._jobs._queues._until_mono.clear()
    run(beat)
    assert events(beat)[2:] == []  # it has just been announced
    long_ago = database_clock.now_ms(services.engine) - 3 * HOUR_MS
    with services.engine.begin() as conn:
        conn.execute(sa.update(tables.jobs).values(announced_ms=long_ago))
    run(beat)
    assert events(beat)[2:] == []  # after an outage all jobs are overdue, until they are run
    monkeypatch.setattr(job_thread, "SETTLED_AFTER_S", 0.0)
    run(beat)
    assert events(beat)[2:] == [("job_went_overdue", "a"), ("job_went_overdue", "b")]
    assert last_text(beat) == "job b waits: no running worker has its package, poller 1.0"

    day_ago = services.board.now_ms() - 25 * HOUR_MS
    services.redis.hset(services.keys.job_queues, QUEUE, day_ago)
    run(beat)
    run(beat)
    assert events(beat)[4:] == [("job_vanished", "a"), ("job_vanished", "b")]
    assert job_catalog.listing(services.engine) == []
    assert entries(beat) == set()


def test_an_absent_database_stops_no_tick_and_is_logged_once(
    services: Services,
    beats: Beats,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread goes on by itself when the database is back."""
    monkeypatch.setattr(job_thread, "LEAST_PAUSE_S", 0.01)
    announce(services, terms("a"))
    serve(services)
    beat = beats.make()
    real = job_catalog.listing
    calls = []

    def absent(*_: object, **__: object) -> None:
        calls.append(1)
        raise errors.StoreUnavailable("cannot use the database")

    monkeypatch.setattr(job_catalog, "listing", absent)
    with capture_logs() as lines:
        tick(beat)
        beat._jobs.start()
        until = time.monotonic() + 10
        while len(calls) < 3 and time.monotonic() < until:
            beat._jobs.run_soon()
            tick(beat)
        assert beat._leader.leads
        monkeypatch.setattr(job_catalog, "listing", real)
        while not sent(services.redis) and time.monotonic() < until:
            beat._jobs.run_soon()
            tick(beat)
        beat._stopping.set()
        beat._jobs.run_soon()
        beat._jobs._thread.join(10)
    names = [line["event"] for line in lines]
    assert names.count("job_work_failed") == 1
    assert names.count("job_work_recovered") == 1
    assert entries(beat) == {"a"}


def test_keys_of_a_wrong_type_are_set_aside(services: Services, beat: PollScheduler) -> None:
    """Those of the schedule, of served queues, and a queue itself."""
    for key in (services.keys.job_queues, services.keys.schedule, QUEUE):
        services.redis.delete(key)
        services.redis.set(key, "another program's")
        beat._jobs._fire_all_mono = 0.0
        with pytest.raises(errors.StoreError) as raised:
            run(beat)
        beat._repair_wrong_type(raised.value)
        run(beat)
        assert entries(beat) == {"a", "b"}


def test_beats_without_election_all_fire(
    services: Services, beats: Beats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job is fired by the first that comes, or by both; the ledger lets one plan run once."""
    job = terms("a")
    announce(services, job)
    serve(services)
    monkeypatch.setenv("POLLER_LEADER_ELECTION", "false")
    one, two = (_as_process(beats, name, monkeypatch) for name in ("one", "two"))
    for beat in (one, two):
        tick(beat)
        run(beat)
    for beat in (one, two, one):
        services.redis.zadd(services.keys.schedule, {services.keys.job_entry("a"): 1})
        tick(beat)
        assert sent(services.redis) == [["a"]]

    now_ms = database_clock.now_ms(services.engine)
    plan = Plan("a", "global", "global", job.schedule.latest_ms(now_ms))
    claims = [job_ledger.claim(services.engine, plan, job, "w", now_ms) for _ in range(2)]
    assert [each.outcome for each in claims] == [Claimed.WON, Claimed.CONFLICTED]


def _as_process(beats: Beats, name: str, monkeypatch: pytest.MonkeyPatch) -> PollScheduler:
    """A beat with services, a token and a name of its own."""
    monkeypatch.setenv("POLLER_INSTANCE_ID", name)
    bootstrap.services.cache_clear()
    return beats.make()


def test_with_election_one_of_two_beats_fires(
    services: Services, beats: Beats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The standby fires as soon as the leader has handed over. Both are registered."""
    announce(services, terms("a"))
    serve(services)
    one, two = (_as_process(beats, name, monkeypatch) for name in ("one", "two"))
    for _ in range(2):
        for beat in (one, two):
            beat._opening._housekeeping_mono = 0.0
            tick(beat)
    run(one)
    tick(two)
    assert sent(services.redis) == []
    found = beat_registry.listing(services.redis, services.keys, services.board.now_ms())
    assert [(beat.instance, beat.leads) for beat in found] == [("one", True), ("two", False)]

    one._leader.stop()
    tick(two)
    run(two)
    tick(two)
    assert sent(services.redis) == [["a"]]


def test_a_beat_that_stops_is_not_registered_any_more(services: Services, beats: Beats) -> None:
    beat = beats.make()
    for _ in range(2):
        beat._opening._housekeeping_mono = 0.0
        tick(beat)
    assert services.redis.hlen(services.keys.beats) == 1
    beat.close()
    assert not services.redis.exists(services.keys.beats)


def test_a_standby_logs_at_debug_which_jobs_it_skips(
    services: Services,
    beat: PollScheduler,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With the job and its instance id, once for each instant; without DEBUG it reads nothing."""
    watch = beat._standby
    now_ms = services.board.now_ms()
    key = services.keys.job_entry("a")
    services.redis.zadd(services.keys.schedule, {key: (now_ms + 1_500) / 1000})
    caplog.set_level("INFO", "poller.beat.jobs.standby_watch")
    watch.check(now_ms)
    assert watch._read_ms == 0
    caplog.set_level("DEBUG", "poller.beat.jobs.standby_watch")
    with capture_logs() as lines:
        watch.check(now_ms)
        services.redis.zadd(services.keys.schedule, {key: now_ms / 1000 + 60})  # the leader fired
        assert not lines
        for later_ms in (1_600, 1_900, 2_700):
            watch.check(now_ms + later_ms)
    skipped = {"event": "job_skipped", "job": "a", "instance": services.leadership.name}
    assert [line for line in lines if skipped.items() <= line.items()] == lines
    assert len(lines) == 1


def test_a_job_that_is_served_again_may_catch_up_before_it_is_told_as_overdue(
    services: Services, beat: PollScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workers were away, and the next pass would find a missed plan."""
    services.redis.delete(services.keys.workers)
    beat._jobs._queues._until_mono.clear()
    run(beat)
    long_ago = database_clock.now_ms(services.engine) - 3 * HOUR_MS
    with services.engine.begin() as conn:
        conn.execute(sa.update(tables.jobs).values(announced_ms=long_ago))
    monkeypatch.setattr(job_thread, "SETTLED_AFTER_S", 3600.0)
    serve(services)
    run(beat)
    assert events(beat)[2:] == []
    monkeypatch.setattr(job_thread, "SETTLED_AFTER_S", 0.0)
    run(beat)
    assert events(beat)[2:] == [("job_went_overdue", "a"), ("job_went_overdue", "b")]
