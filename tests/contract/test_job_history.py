"""What planners and people read from the ledger of jobs, by seeks and never by a scan."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import database_clock
from poller.db import engine as sql
from poller.db.jobs import job_catalog, job_history, job_ledger, job_losses
from poller.db.jobs.job_ledger import Claim
from poller.db.tables import job_runs
from poller.domain.jobs.job_run import FailureCode, Origin, Plan, Status
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.jobs.plan_choice import PlannedRun, ScopeHistory

TERMS = JobTerms("tidy", Cadence(60_000), overlap=True)
KEY = ("tidy", "global", "global")
#: A plan of 2025.
START_MS = 29_000_000 * 60_000


def plan_ms(minute: int) -> int:
    return START_MS + minute * 60_000


def start(
    engine: Engine,
    minute: int,
    key: tuple[str, str, str] = KEY,
    origin: Origin = Origin.SCHEDULE,
) -> Claim:
    return job_ledger.claim(engine, Plan(*key, plan_ms(minute)), TERMS, "r1", 0, origin)


def succeed(
    engine: Engine,
    minute: int,
    key: tuple[str, str, str] = KEY,
    origin: Origin = Origin.SCHEDULE,
) -> None:
    won = start(engine, minute, key, origin)
    assert job_ledger.succeed(engine, won.run_id, won.token, 1, {})


def fail(
    engine: Engine,
    minute: int,
    key: tuple[str, str, str] = KEY,
    retry_in_s: float | None = None,
) -> None:
    won = start(engine, minute, key)
    code = FailureCode.HANDLER_ERROR
    assert job_ledger.fail(engine, won.run_id, won.token, code, "no", retry_in_s)


def test_planning_knows_the_newest_run_of_each_scope(engine: Engine) -> None:
    """Each scope has its newest scheduled plan; a scope without rows has an empty history."""
    site = ("tidy", "site", "s1")
    for minute in (2, 1, 3):
        succeed(engine, minute)
    fail(engine, 1, site)
    unknown = ("tidy", "site", 'none "\\ 漢')
    assert job_history.planning(engine, [KEY, site, unknown]) == {
        KEY: ScopeHistory(PlannedRun(plan_ms(3), Status.SUCCESS, 1)),
        site: ScopeHistory(PlannedRun(plan_ms(1), Status.FAILED, 1)),
        unknown: ScopeHistory(),
    }
    assert job_history.planning(engine, []) == {}


def test_runs_on_demand_move_no_plan(engine: Engine) -> None:
    """A run that a person asked for counts as running, not as the newest plan."""
    succeed(engine, 1)
    start(engine, 5, origin=Origin.DEMAND)
    history = job_history.planning(engine, [KEY])[KEY]
    assert history == ScopeHistory(PlannedRun(plan_ms(1), Status.SUCCESS, 1), is_running=True)


def test_a_clock_that_was_ahead_for_a_moment_stops_no_job(engine: Engine) -> None:
    """A run of a plan of next year does not count until then."""
    succeed(engine, 1)
    succeed(engine, 100 * 366 * 1440)
    history = job_history.planning(engine, [KEY])[KEY]
    assert history == ScopeHistory(PlannedRun(plan_ms(1), Status.SUCCESS, 1))


def test_planning_lists_due_retries_oldest_first(engine: Engine) -> None:
    """Retries of the scope that are due, also below newer plans; later ones and others are not."""
    for minute in (3, 1):
        fail(engine, minute, retry_in_s=0)
    fail(engine, 2, retry_in_s=60)
    fail(engine, 1, ("tidy", "site", "s1"), retry_in_s=0)
    fail(engine, 1, ("other", "global", "global"), retry_in_s=0)
    succeed(engine, 4)
    history = job_history.planning(engine, [KEY])[KEY]
    assert history.retry_plans == (plan_ms(1), plan_ms(3))


def test_planning_reads_many_scopes(engine: Engine) -> None:
    """Scopes are looked up in chunks."""
    keys = [("tidy", "target", str(number)) for number in range(job_history.CHUNK + 2)]
    succeed(engine, 1, keys[-1])
    histories = job_history.planning(engine, keys)
    assert len(histories) == len(keys)
    assert [key for key, history in histories.items() if history.newest] == [keys[-1]]


def test_jobs_with_due_retries_are_named(engine: Engine) -> None:
    """A job of the catalogue with a retry that is due now, and no other one."""
    names = ("tidy", "calm", "later")
    terms = [JobTerms(name, Cadence(60_000)) for name in names]
    job_catalog.announce(engine, "job.poller", "poller 1.0", terms)
    assert job_history.due_retries(engine) == set()
    fail(engine, 1, retry_in_s=0)
    fail(engine, 1, ("later", "global", "global"), retry_in_s=60)
    fail(engine, 1, ("calm", "global", "global"))
    assert job_history.due_retries(engine) == {"tidy"}


def test_runs_are_listed_newest_first_by_filters(engine: Engine) -> None:
    """Job, scope and status filter; `before_id` is the next page."""
    site = ("tidy", "site", "s1")
    succeed(engine, 1)
    fail(engine, 2)
    succeed(engine, 1, site)
    succeed(engine, 1, ("other", "global", "global"))
    start(engine, 3)
    everything = job_history.runs(engine)
    assert [run.plan.job for run in everything] == ["tidy", "other", "tidy", "tidy", "tidy"]
    assert [run.plan.plan_ms for run in job_history.runs(engine, "tidy", scope=KEY[1:])] == [
        plan_ms(3),
        plan_ms(2),
        plan_ms(1),
    ]
    assert [run.plan.scope_id for run in job_history.runs(engine, "tidy", scope=site[1:])] == ["s1"]
    assert [run.status for run in job_history.runs(engine, status=Status.FAILED)] == [Status.FAILED]
    assert [run.status for run in job_history.runs(engine, status=Status.RUNNING)] == [
        Status.RUNNING
    ]
    assert len(job_history.runs(engine, "tidy", Status.SUCCESS)) == 2
    assert job_history.runs(engine, limit=2) == everything[:2]
    assert job_history.runs(engine, limit=2, before_id=everything[1].id) == everything[2:4]
    assert job_history.runs(engine, "tidy", before_id=everything[0].id) == everything[2:]


def test_a_summary_has_the_last_run_and_the_last_success(engine: Engine) -> None:
    """Each job of the catalogue has one, with its failures since the last success."""
    names = ("tidy", "new")
    terms = [JobTerms(name, Cadence(60_000)) for name in names]
    job_catalog.announce(engine, "job.poller", "poller 1.0", terms)
    fail(engine, 1)
    succeed(engine, 2)
    fail(engine, 3, retry_in_s=60)
    fail(engine, 4)
    start(engine, 5)
    summaries = job_history.summaries(engine)
    newest, retried, success = (job_history.runs(engine)[number] for number in (0, 2, 3))
    summary = summaries["tidy"]
    assert summary.last == newest
    assert summary.running == (newest,)
    assert summary.last_success_plan_ms == plan_ms(2)
    assert summary.last_success_ms == success.finished_ms
    assert summary.next_retry_ms == retried.next_retry_ms
    assert summary.failures == 2
    assert summaries["new"].last is None
    assert summaries["new"].failures == 0


def test_a_summary_counts_lost_runners_since_any_other_end(engine: Engine) -> None:
    """All attempts of a plan are one row; a further attempt of an old plan is the newest end."""
    terms = JobTerms("tidy", Cadence(60_000), retry_delays_s=(0.0,), max_attempts=5)
    job_catalog.announce(engine, "job.poller", "poller 1.0", [terms])

    def attempt(minute: int) -> Claim:
        return job_ledger.claim(engine, Plan(*KEY, plan_ms(minute)), terms, "r1", 0)

    def lose(minute: int, closes: bool = True) -> None:
        assert attempt(minute).run_id
        with sql.writing(engine) as conn:
            conn.execute(sa.update(job_runs).values(stale_ms=1))
        if closes:
            assert len(job_ledger.close_stale(engine)) == 1

    def losses() -> int:
        return job_history.summaries(engine)["tidy"].losses

    succeed(engine, 0)
    assert losses() == 0
    lose(1)
    lose(1)
    assert losses() == 2
    lose(2)
    assert losses() == 3
    assert job_losses.is_held_back(engine, "tidy")
    assert not job_losses.is_held_back(engine, "other")
    summary = job_history.summaries(engine)["tidy"]
    assert summary.lost_ms == job_history.runs(engine, "tidy", limit=1)[0].finished_ms
    lose(2, closes=False)  # another runner takes it over before the leader closes it
    stolen = attempt(2)
    assert losses() == 2
    assert job_ledger.give_back(engine, stolen.run_id, stolen.token)
    assert losses() == 4

    tried = attempt(1)
    code = FailureCode.HANDLER_ERROR
    assert job_ledger.fail(engine, tried.run_id, tried.token, code, "no", 0.0)
    with sql.writing(engine) as conn:  # the clock may not have moved since
        later = sa.update(job_runs).where(job_runs.c.id == tried.run_id)
        conn.execute(later.values(finished_ms=job_runs.c.finished_ms + 1))
    assert losses() == 0
    lose(1)
    with sql.writing(engine) as conn:
        conn.execute(later.values(finished_ms=job_runs.c.finished_ms + 2))
    assert losses() == 1
    succeed(engine, 3)
    assert losses() == 0
    assert not job_losses.is_held_back(engine, "tidy")


def test_an_abandoned_run_counts_as_running_until_it_is_closed(engine: Engine) -> None:
    """Otherwise a job is planned again before the leader can hold it back."""
    start(engine, 1)
    with sql.writing(engine) as conn:
        conn.execute(sa.update(job_runs).values(stale_ms=1))
    assert job_history.planning(engine, [KEY])[KEY].is_running
    assert job_losses.is_held_back(engine, "tidy")
    job_ledger.close_stale(engine)
    assert not job_losses.is_held_back(engine, "tidy")
    assert not job_history.planning(engine, [KEY])[KEY].is_running


def test_the_success_of_one_scope_does_not_hide_the_failure_of_another(engine: Engine) -> None:
    """A failure is the last run of its job until its scope succeeds, or for one more round."""
    terms = JobTerms("tidy", Cadence(60_000), names_scopes=True)
    job_catalog.announce(engine, "job.poller", "poller 1.0", [terms])
    bad, good = ("tidy", "site", "bad"), ("tidy", "site", "good")

    def last() -> tuple[str, int]:
        run = job_history.summaries(engine)["tidy"].last
        assert run is not None
        return run.plan.scope_id, (run.plan.plan_ms - START_MS) // 60_000

    fail(engine, 1, bad)
    succeed(engine, 1, good)
    assert last() == ("bad", 1)
    succeed(engine, 2, good)
    assert last() == ("bad", 1)
    assert job_history.summaries(engine)["tidy"].failures == 1
    fail(engine, 2, bad)
    assert last() == ("bad", 2)
    succeed(engine, 3, bad)
    assert last() == ("bad", 3)
    succeed(engine, 3, good)
    assert last() == ("good", 3)

    fail(engine, 4, bad)
    for minute in (4, 5):
        succeed(engine, minute, good)
    assert last() == ("bad", 4)
    succeed(engine, 6, good)
    assert last() == ("good", 6)

    fail(engine, 7, bad)
    by_hand = Plan("tidy", "site", "new", START_MS + 7 * 60_000 + 30_000)
    now_ms = database_clock.now_ms(engine)
    won = job_ledger.claim(engine, by_hand, terms, "w@one", now_ms, Origin.DEMAND)
    assert job_ledger.succeed(engine, won.run_id, won.token, 0, {})
    assert last() == ("bad", 7)


def last_run(engine: Engine) -> tuple[str, int, Status]:
    run = job_history.summaries(engine)["tidy"].last
    assert run is not None
    return run.plan.scope_id, (run.plan.plan_ms - START_MS) // 60_000, run.status


def test_a_run_by_hand_of_an_older_plan_says_nothing_about_newer_ones(engine: Engine) -> None:
    """Neither a missed one nor one that failed; the success of the plan that failed last does."""
    job_catalog.announce(engine, "job.poller", "poller 1.0", [JobTerms("tidy", Cadence(60_000))])
    fail(engine, 1)
    succeed(engine, 3)
    succeed(engine, 2, origin=Origin.DEMAND)
    assert last_run(engine) == ("global", 3, Status.SUCCESS)
    assert job_ledger.allow_again(engine, Plan(*KEY, plan_ms(1)))
    succeed(engine, 1, origin=Origin.DEMAND)
    assert last_run(engine) == ("global", 3, Status.SUCCESS)

    fail(engine, 5)
    succeed(engine, 4, origin=Origin.DEMAND)
    assert last_run(engine) == ("global", 5, Status.FAILED)
    assert job_history.summaries(engine)["tidy"].failures == 1
    assert job_ledger.allow_again(engine, Plan(*KEY, plan_ms(5)))
    succeed(engine, 5, origin=Origin.DEMAND)
    assert last_run(engine) == ("global", 5, Status.SUCCESS)
    assert job_history.summaries(engine)["tidy"].failures == 0


def test_a_run_by_hand_of_another_scope_mends_no_scope(engine: Engine) -> None:
    """Nor does the first scheduled run of a new scope; an older plan by hand is not the newest."""
    terms = JobTerms("tidy", Cadence(60_000), names_scopes=True)
    job_catalog.announce(engine, "job.poller", "poller 1.0", [terms])
    bad, good, new = ("tidy", "site", "bad"), ("tidy", "site", "good"), ("tidy", "site", "new")
    fail(engine, 5, bad)
    succeed(engine, 7, good, Origin.DEMAND)
    assert last_run(engine) == ("bad", 5, Status.FAILED)
    succeed(engine, 6, new)
    assert last_run(engine) == ("bad", 5, Status.FAILED)
    summary = job_history.summaries(engine)["tidy"]
    assert summary.newest_plan_ms == plan_ms(7), "the job is not overdue"
    succeed(engine, 8, bad, Origin.DEMAND)
    succeed(engine, 4, good, Origin.DEMAND)
    assert last_run(engine) == ("bad", 8, Status.SUCCESS)


def test_a_scope_whose_retry_is_to_come_counts_in_every_round(engine: Engine) -> None:
    """Others are forgotten after one more round, as their scope may no longer exist."""
    terms = JobTerms("tidy", Cadence(60_000), names_scopes=True)
    job_catalog.announce(engine, "job.poller", "poller 1.0", [terms])
    bad, good = ("tidy", "site", "bad"), ("tidy", "site", "good")
    fail(engine, 1, bad, retry_in_s=3600)
    fail(engine, 1, ("tidy", "site", "gone"))
    for minute in range(1, 6):
        succeed(engine, minute, good)
    assert last_run(engine) == ("bad", 1, Status.FAILED)
    succeed(engine, 6, bad)
    assert last_run(engine) == ("bad", 6, Status.SUCCESS)
