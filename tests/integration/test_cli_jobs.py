"""`poller jobs`: the catalogue and the ledger for people, and runs by hand; on real stores."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from poller.bootstrap import Services
from poller.cli import main
from poller.cli.actions import job_follow
from poller.cli.arguments import completion
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_history, job_ledger, job_lookup
from poller.db.tables import job_runs
from poller.domain.jobs.job_run import FailureCode, Origin, Plan, Status
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.jobs.run_totals import RunOutcome
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import Worker
from poller.jobs import registry
from poller.plugins import Broken
from poller.state.cluster import event_stream, job_totals, worker_registry
from tests.integration.commands import Cli, Result, ok

MINUTE_MS = 60_000
NIGHTLY = JobTerms("nightly", Cron("0 2 * * *", "Europe/Amsterdam"), "Tidies up.")
SWEEP = JobTerms("sweep", Cadence(MINUTE_MS), retry_delays_s=(30.0,))
CAREFUL = JobTerms("careful", Cadence(MINUTE_MS), max_attempts=1, retry_delays_s=())
BY_SITE = JobTerms("by_site", Cadence(MINUTE_MS), names_scopes=True, retry_delays_s=(30.0,))
Run = Callable[..., Result]


@pytest.fixture
def jobs(services: Services, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `poller jobs`, with four jobs of one package in the catalogue."""
    job_catalog.announce(
        services.engine, "job.acme", "acme 1.2", [BY_SITE, CAREFUL, NIGHTLY, SWEEP]
    )

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = main.run(["jobs", *arguments])
        return Result(code, *capsys.readouterr())

    return run


@pytest.fixture
def worker(services: Services) -> None:
    """A living worker that has the package."""
    has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["poll.snmp", "job.acme"])
    worker_registry.announce(services.redis, services.keys, has_jobs)


def test_an_installed_job_that_cannot_be_used_is_listed(
    jobs: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its package and the reason, beside the others and alone."""
    broken = Broken("boom", "acme-jobs 1.0", "SystemExit: boom", hint="ask its author")
    monkeypatch.setattr(registry, "load", lambda: registry.Registry(broken=(broken,)))
    listed = ok(jobs("list")).out
    assert "sweep\t" in listed
    assert "\nboom\tacme-jobs 1.0\tfailed to import\tSystemExit: boom\n" in listed
    alone = jobs("list", "boom")
    assert (alone.code, "none of" in alone.err) == (0, False)
    assert "SystemExit: boom" in alone.out
    assert "sweep" not in alone.out
    said = json.loads(jobs("list", "--json").out)
    assert [each["name"] for each in said["broken"]] == ["boom"]
    for refused in (jobs("show", "boom"), jobs("run", "boom")):
        assert refused.code == 3
        assert 'job "boom" (acme-jobs 1.0) cannot be used' in refused.err
        assert "cause: SystemExit: boom" in refused.err
        assert "try: ask its author" in refused.err


def test_a_job_that_a_worker_cannot_use_is_listed_on_other_machines(
    services: Services, jobs: Run
) -> None:
    """The heartbeat of the worker tells the fault: the package may not be installed here."""
    fault = {"distribution": "acme 1.0", "reason": "cron: no", "hint": "mend it", "state": "x"}
    for number in (1, 2):
        has_fault = Worker(f"w{number}@a", 0, 1, 0, 0, 2**20, broken_jobs={"odd": fault})
        worker_registry.announce(services.redis, services.keys, has_fault)
    [told] = json.loads(ok(jobs("list", "--json")).out)["broken"]
    assert told == {"name": "odd", **fault, "workers": ["w1@a", "w2@a"]}
    assert "\nodd\tacme 1.0\tx\tcron: no\n" in jobs("list").out
    refused = jobs("show", "odd")
    assert 'job "odd" (acme 1.0) cannot be used by w1@a' in refused.err
    assert "cause: cron: no" in refused.err
    assert "try: mend it" in refused.err


def plan(services: Services, name: str = "sweep", back: int = 0, **scope: str) -> Plan:
    """A plan of a job with a cadence of one minute, so many minutes ago."""
    now_ms = database_clock.now_ms(services.engine)
    kind, key = scope.get("kind", "global"), scope.get("key", "global")
    return Plan(name, kind, key, now_ms - now_ms % MINUTE_MS - back * MINUTE_MS)


def claim(services: Services, of: Plan, terms: JobTerms = SWEEP) -> job_ledger.Claim:
    return job_ledger.claim(services.engine, of, terms, "w1@a", of.plan_ms + 150)


def succeed(services: Services, of: Plan, terms: JobTerms = SWEEP) -> None:
    held = claim(services, of, terms)
    assert job_ledger.succeed(services.engine, held.run_id, held.token, 12, {"seen": 12})


def fail(
    services: Services, of: Plan, terms: JobTerms = SWEEP, retry_in_s: float | None = 30.0
) -> None:
    held = claim(services, of, terms)
    message = "OSError: no route\nto the archive"
    code = FailureCode.HANDLER_ERROR
    assert job_ledger.fail(services.engine, held.run_id, held.token, code, message, retry_in_s)


def rows(result: Result) -> list[dict[str, str]]:
    """The rows of a list in a pipe, by lower-case title."""
    head, *lines = ok(result).out.splitlines()
    titles = head.split("\t")
    return [dict(zip(titles, line.split("\t"), strict=True)) for line in lines]


@pytest.mark.usefixtures("worker")
def test_the_list_has_state_schedule_and_last_run(services: Services, jobs: Run) -> None:
    """Running with its holder, failing with its retry, and one that has not run yet."""
    claim(services, plan(services))
    fail(services, plan(services, "careful", 1), CAREFUL, None)
    found = {row["name"]: row for row in rows(jobs())}
    assert list(found) == ["by_site", "careful", "nightly", "sweep"]
    assert (found["sweep"]["state"], found["sweep"]["outcome"]) == ("running", "running")
    assert found["sweep"]["holder"] == "w1@a, heartbeat 0 s ago"
    assert (found["careful"]["state"], found["careful"]["attempt"]) == ("failing", "1")
    assert found["careful"]["next retry"] == ""
    assert found["nightly"]["schedule"] == "0 2 * * * Europe/Amsterdam"
    assert (found["nightly"]["state"], found["nightly"]["last run"]) == ("waiting", "")


@pytest.mark.usefixtures("worker")
def test_json_and_filters_of_the_list(services: Services, jobs: Run) -> None:
    """One schema for list; by state, by name, and with `job` instead of `jobs`."""
    fail(services, plan(services, back=1))
    body = ok(jobs("list", "--json", "--state", "failing", "--state", "overdue")).json
    assert body["schema"] == "poller.jobs/1"
    [item] = body["items"]
    assert (item["name"], item["last_error_code"], item["failures_in_a_row"]) == (
        "sweep",
        "handler_error",
        1,
    )
    assert item["next_retry"] is not None
    assert (item["workers"], body["total"]) == (1, 4)
    assert [row["name"] for row in rows(jobs("nightly"))] == ["nightly"]
    assert "none of 4 jobs is in that state" in jobs("--state", "paused").err
    assert main.run(["job", "list"]) == 0


def test_a_wrong_name_gets_the_nearest(jobs: Run) -> None:
    """Exit code 3, and nothing is sent or changed."""
    for words in (("show",), ("run",), ("pause",), ("resume",), ("history",), ("list",)):
        found = jobs(*words, "nightyl", "--json")
        assert (found.code, found.error["code"]) == (3, "P101"), words
        assert "did you mean nightly?" in found.error["try"], words


def test_without_redis_the_list_still_answers(services: Services, cli: Cli) -> None:
    """The note says what is not known; no job is called unserved."""
    job_catalog.announce(services.engine, "job.acme", "acme 1.2", [SWEEP])
    found = cli("jobs", "--json")
    assert found.code == 0
    assert "which workers run is not known" in found.err
    assert (found.json["items"][0]["workers"], found.json["items"][0]["state"]) == (None, "waiting")
    assert "the scheduler was not notified" in cli("jobs", "pause", "sweep").err
    assert job_catalog.get(services.engine, "sweep").paused_ms is not None
    assert cli("jobs", "run", "sweep").code == 5


@pytest.mark.usefixtures("worker")
def test_show_has_all_terms_plans_and_runs(services: Services, jobs: Run) -> None:
    """The last error in full, the next five plans in local time and UTC, the scopes that ran."""
    succeed(services, plan(services, "by_site", 2, kind="site", key="ams"), BY_SITE)
    fail(services, plan(services, "by_site", 1, kind="site", key="fra"), BY_SITE)
    text = ok(jobs("show", "by_site")).out
    for expected in (
        "state: failing",
        "schedule: every 1 m",
        "retries: 3 attempts, again after 30 s",
        "package: acme 1.2",
        "workers: w1@a",
        "scopes: site:ams, site:fra",
        'last result:\n  {\n    "seen": 12\n  }',
        "last error:\n  handler_error: OSError: no route to the archive",
    ):
        assert expected in text, expected

    body = ok(jobs("show", "nightly", "--json")).json
    assert body["schema"] == "poller.jobs.show/1"
    assert len(body["next_plans"]) == 5
    assert body["next_plans"][0]["local"][11:19] == "02:00:00"
    assert body["terms"]["run_timeout_seconds"] == 600
    assert body["runs"] == []


@pytest.mark.usefixtures("worker")
def test_history_is_newest_first_and_paged(services: Services, jobs: Run) -> None:
    """By job, outcome and scope; `--before` goes on."""
    for back in (4, 3, 2):
        succeed(services, plan(services, back=back))
    fail(services, plan(services, back=1, kind="site", key="ams"))
    found = rows(jobs("history", "sweep"))
    assert [row["outcome"] for row in found] == ["failed", "success", "success", "success"]
    assert (found[0]["scope"], found[1]["scope"]) == ("site:ams", "global")
    assert (found[1]["late"], found[1]["rows"], found[1]["attempt"]) == ("150 ms", "12", "1 of 3")
    assert found[1]["result"] == "seen=12"
    assert found[0]["result"] == "handler_error: OSError: no route to the archive"
    assert len(rows(jobs("history", "--status", "failed"))) == 1
    assert len(rows(jobs("history", "sweep", "--scope", "site:ams"))) == 1
    assert "--scope: of which job?" in jobs("history", "--scope", "site:ams").err

    first = jobs("history", "--limit", "3", "--json").json
    rest = jobs("history", "--limit", "3", "--before", str(first["next"]), "--json").json
    assert [len(first["items"]), len(rest["items"]), rest["next"]] == [3, 1, None]
    assert "is no scope" in jobs("history", "--scope", "ams").err


def test_pause_and_resume_record_the_person(services: Services, jobs: Run) -> None:
    """Each is an event; a second pause changes nothing; the leader is woken."""
    listener = services.redis.pubsub()
    listener.subscribe(services.keys.wake)
    assert ok(jobs("pause", "sweep", "nightly")).out == "paused 2 jobs\n"
    paused = job_catalog.get(services.engine, "sweep")
    assert paused.paused_ms is not None
    assert paused.paused_by
    assert {row["name"]: row["state"] for row in rows(jobs())}["sweep"] == "paused"
    assert f"by {paused.paused_by}" in jobs("show", "sweep").out

    again = ok(jobs("pause", "sweep", "--json")).json
    assert (again["paused"], again["paused_already"]) == ([], 1)
    assert ok(jobs("resume", "sweep")).out == "resumed sweep\n"
    assert job_catalog.get(services.engine, "sweep").paused_ms is None

    entries = event_stream.newest(services.redis, services.keys, 10)
    told = [entry.event for entry in reversed(entries) if entry.event]
    kinds = [(event.kind, event.data["job"]) for event in told]
    assert kinds == [
        (Kind.JOB_PAUSED, "sweep"),
        (Kind.JOB_PAUSED, "nightly"),
        (Kind.JOB_RESUMED, "sweep"),
    ]
    woken = [listener.get_message(timeout=1) for _ in range(3)]
    assert [each["data"] for each in woken if each] == [1, "jobs", "jobs"]


def test_pause_of_all_is_confirmed(services: Services, jobs: Run) -> None:
    """Not without a question, and not beside names."""
    assert jobs("pause", "--all").code == 2
    assert "which jobs?" in jobs("pause").err
    assert "do not go together" in jobs("pause", "sweep", "--all").err
    assert jobs("pause", "--all", "--dry-run").out.startswith("would pause 4 jobs")
    assert all(job.paused_ms is None for job in job_catalog.listing(services.engine))
    assert ok(jobs("pause", "--all", "--yes")).out == "paused 4 jobs\n"
    assert jobs("pause", "sweep", "unknown").code == 3


def test_a_job_in_use_is_not_forgotten(services: Services, jobs: Run) -> None:
    """Only one that no running worker has: it would come back by itself."""
    has_jobs = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["job.acme"])
    worker_registry.announce(services.redis, services.keys, has_jobs)
    refused = jobs("forget", "sweep", "--yes")
    assert (refused.code, "w1@a has its package" in refused.err) == (2, True)

    job_totals.record_run(services.redis, services.keys, "sweep", RunOutcome.SUCCESS, 1.0)
    job_catalog.mark_gone(services.engine, ["sweep"])
    assert "sweep" not in jobs().out
    assert {row["name"]: row["state"] for row in rows(jobs("--gone"))}["sweep"] == "gone"
    assert jobs("forget", "sweep").code == 2
    assert ok(jobs("forget", "sweep", "--yes")).out == "forgot job sweep\n"
    assert "sweep" not in jobs("--gone").out
    assert job_totals.read(services.redis, services.keys) == {}


class Runner:
    """Takes messages from the queue as a worker would, and claims and ends their first plans."""

    def __init__(
        self,
        services: Services,
        failing: bool = False,
        hold_s: float = 0.0,
        retry_in_s: float | None = None,  # the first attempt fails, the next succeeds
        result: tuple[int, dict[str, Any]] = (7, {}),
    ) -> None:
        self._result = result
        self.messages: list[list[Any]] = []
        self._services = services
        self._failing = failing
        self._hold_s = hold_s
        self._retry_in_s = retry_in_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._take, daemon=True)

    def __enter__(self) -> Runner:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _take(self) -> None:
        while not self._stopping.wait(0.05):
            for arguments in sent(self._services):
                self.messages.append(arguments)
                self._run(arguments)

    def _run(self, arguments: list[Any]) -> None:
        name, kind, key, plans_ms, dispatched_ms, origin = arguments
        of = Plan(name, kind, key, plans_ms[0])
        terms = job_catalog.get(self._services.engine, name).terms
        engine = self._services.engine
        held = job_ledger.claim(engine, of, terms, "w1@a", dispatched_ms, Origin(origin))
        self._stopping.wait(self._hold_s)
        if self._retry_in_s is not None:
            code = FailureCode.HANDLER_ERROR
            retry_in_s, self._retry_in_s = self._retry_in_s, None
            job_ledger.fail(engine, held.run_id, held.token, code, "boom", retry_in_s)
            self._stopping.wait(0.5)
            self._run(arguments)
        elif self._failing:
            code = FailureCode.HANDLER_ERROR
            job_ledger.fail(engine, held.run_id, held.token, code, "boom", None)
        else:
            job_ledger.succeed(engine, held.run_id, held.token, *self._result)


def sent(services: Services) -> list[list[Any]]:
    """Take the messages of the job queue, and return the arguments of each."""
    found = []
    for key in services.redis.scan_iter("*job.acme*", _type="list"):
        while (text := services.redis.lpop(key)) is not None:
            message = json.loads(text)
            assert message["headers"]["task"] == "poller.run_job"
            found.append(json.loads(message["body"])[0])
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that looks every twentieth of a second, and prints each look."""
    monkeypatch.setattr(job_follow, "LONGEST_CHECK_S", 0.05)
    monkeypatch.setattr(job_follow, "LINE_EVERY_S", 0.0)


@pytest.mark.usefixtures("worker", "quick")
def test_a_run_by_hand_is_followed_to_its_end(services: Services, jobs: Run) -> None:
    """The heartbeat and the attempt are shown while it runs; the result at the end."""
    with Runner(services, hold_s=0.5) as runner:
        found = ok(jobs("run", "by_site", "--scope", "site:ams", "--timeout", "30s"))
    assert "job by_site for site:ams" in found.out
    assert "succeeded on w1@a" in found.out
    assert found.out.endswith(": 7 rows\n")
    assert "heartbeat 0 s ago, attempt 1 of 3" in found.err
    [[name, kind, key, [plan_ms], dispatched_ms, origin]] = runner.messages
    assert (name, kind, key, origin) == ("by_site", "site", "ams", "demand")
    assert plan_ms <= dispatched_ms < plan_ms + 1_000
    [row] = job_history.runs(services.engine, "by_site")
    assert (row.status, row.origin) == (Status.SUCCESS, Origin.DEMAND)


@pytest.mark.usefixtures("worker", "quick")
def test_the_result_of_a_run_is_printed(services: Services, jobs: Run) -> None:
    """Its details on one line; no rows where the handler counted none."""
    details = {"devices": 42, "site": "ams", "by kind": {"snmp": 40, "http": 2}}
    with Runner(services, result=(0, details)):
        found = ok(jobs("run", "sweep", "--timeout", "30s"))
    text = 'devices=42 site=ams by kind={"snmp":40,"http":2}'
    assert found.out.endswith(f"s: {text}\n")
    with Runner(services, result=(0, {})):
        found = ok(jobs("run", "careful", "--timeout", "30s"))
    assert found.out.endswith((" ms\n", " s\n"))


@pytest.mark.usefixtures("worker", "quick")
def test_a_run_that_fails_has_exit_code_1(services: Services, jobs: Run) -> None:
    """With its error, and the command that repeats it; --json has the row."""
    with Runner(services, failing=True):
        found = jobs("run", "careful", "--json")
    assert found.code == 1
    assert found.json["schema"] == "poller.jobs.run/1"
    assert (found.json["outcome"], found.json["error_code"]) == ("failed", "handler_error")
    assert f"poller jobs run careful --plan {found.json['plan']}" in found.err


@pytest.mark.usefixtures("worker", "quick")
def test_a_failed_plan_is_repaired(services: Services, jobs: Run) -> None:
    """The same row succeeds with one attempt more; then the plan is refused."""
    of = plan(services, "careful", 3)
    fail(services, of, CAREFUL, None)
    at = jobs("history", "careful", "--json").json["items"][0]["plan"]
    with Runner(services):
        found = ok(jobs("run", "careful", "--plan", at))
    assert f"plan {at}, again succeeded" in found.out
    row = job_lookup.of_plan(services.engine, of)
    assert row is not None
    assert (row.status, row.attempt, row.max_attempts) == (Status.SUCCESS, 2, 2)
    refused = jobs("run", "careful", "--plan", at)
    assert (refused.code, f"plan: {at} succeeded at" in refused.err) == (2, True)


@pytest.mark.usefixtures("worker", "quick")
def test_a_missed_plan_is_run(services: Services, jobs: Run) -> None:
    """An instant of the schedule without a row; other instants are refused."""
    with Runner(services) as runner:
        ok(jobs("run", "sweep", "--plan", "2026-11-17T01:02:00Z"))
    assert runner.messages[0][3] == [1_794_877_320_000]
    wrong = jobs("run", "sweep", "--plan", "2026-11-17T01:02:03Z")
    assert wrong.code == 2
    assert "plan: 2026-11-17T01:02:03Z is no plan of every 1 m" in wrong.err
    assert "--plan 2026-11-17T01:02:00Z" in wrong.err
    assert "is in the future" in jobs("run", "sweep", "--plan", "2096-01-01T00:00Z").err
    assert '--plan: "soon" is no time' in jobs("run", "sweep", "--plan", "soon").err
    assert sent(services) == []


@pytest.mark.usefixtures("quick")
def test_nothing_is_sent_that_no_worker_takes(services: Services, jobs: Run) -> None:
    """The package is named; a job that its package lost, too."""
    found = jobs("run", "sweep", "--json")
    assert (found.code, found.error["cause"]) == (3, "no worker runs")
    assert "poller worker" in found.error["try"]
    other = Worker("w2@b", 0, 1, 0, 0, 2**20, queues=["poll.snmp"])
    worker_registry.announce(services.redis, services.keys, other)
    assert "none has its package, acme 1.2" in jobs("run", "sweep").err
    assert sent(services) == []


@pytest.mark.usefixtures("worker", "quick")
def test_a_scope_is_that_of_a_job_with_scopes(services: Services, jobs: Run) -> None:
    """A job that runs for each site is not run for the cluster, nor the other way round."""
    assert "runs for each of its scopes" in jobs("run", "by_site").err
    assert "it runs for the whole cluster" in jobs("run", "sweep", "--scope", "site:ams").err
    assert '--scope: "ams" is no scope' in jobs("run", "by_site", "--scope", "ams").err
    long = jobs("run", "by_site", "--scope", "site:" + "x" * 201)
    assert (long.code, "more than 200 characters" in long.err) == (2, True)
    assert sent(services) == []


@pytest.mark.usefixtures("worker", "quick")
def test_a_scope_that_runs_is_not_run_twice(services: Services, jobs: Run) -> None:
    """A worker would drop the message silently, so the holder is named instead."""
    claim(services, plan(services))
    found = jobs("run", "sweep")
    assert (found.code, "job" in found.err, sent(services)) == (2, True, [])
    assert "w1@a has run it for" in found.err
    claim(services, plan(services, "by_site", kind="site", key="ams"), BY_SITE)
    assert "has run it for" in jobs("run", "by_site", "--scope", "site:ams").err
    assert ok(jobs("run", "by_site", "--scope", "site:fra", "--no-wait")).out.startswith("sent job")
    assert len(sent(services)) == 1


@pytest.mark.usefixtures("worker", "quick")
def test_a_timeout_leaves_the_run_alone(services: Services, jobs: Run) -> None:
    """Exit code 124; a paused job may be run by hand, and that is said."""
    jobs("pause", "sweep")
    started = time.monotonic()
    found = jobs("run", "sweep", "--timeout", "300ms")
    assert found.code == 124
    assert time.monotonic() - started < 20
    assert "no worker has taken it yet; it goes on" in found.err
    assert "note: job sweep is paused by" in found.err
    assert len(sent(services)) == 1
    assert "does not go with --no-wait" in jobs("run", "sweep", "--no-wait", "--timeout", "1s").err


@pytest.mark.usefixtures("worker", "quick")
def test_a_lost_worker_does_not_end_the_wait(services: Services, jobs: Run) -> None:
    """A failed run that is run again at once is followed to its second attempt."""
    with Runner(services, retry_in_s=0.0) as runner:
        found = ok(jobs("run", "sweep", "--timeout", "60s"))
    assert "attempt 1 of 3 failed: handler_error; again soon" in found.err
    assert "succeeded on w1@a" in found.out
    assert len(runner.messages) == 1


def test_status_names_jobs_in_trouble(
    services: Services, jobs: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line each, with the command that shows more; many are counted."""
    job_catalog.note_planning(services.engine, "nightly", "scopes: no route")
    main.run(["status"])
    told = "nightly: failing, it cannot be planned: scopes: no route; poller jobs show nightly"
    assert told in capsys.readouterr().out
    assert "cannot be planned: scopes: no route" in jobs("show", "nightly").out
    job_catalog.note_planning(services.engine, "nightly", "")

    fail(services, plan(services, back=1))
    assert (main.run(["status"]), main.run(["status", "--strict"])) == (0, 1)
    capsys.readouterr()
    main.run(["status", "--json"])
    body = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in body["jobs"]["troubled"]] == ["sweep"]
    assert "Job sweep fails." in body["verdict"]

    many = [JobTerms(f"job{number}", Cadence(MINUTE_MS)) for number in range(7)]
    job_catalog.announce(services.engine, "job.many", "many 1.0", many)
    for terms in many:
        fail(services, plan(services, terms.name, 1), terms)
    main.run(["status"])
    lines = capsys.readouterr().out.splitlines()
    named = [line for line in lines if line.startswith("  job ")]
    assert len(named) == 5
    assert "failing, 1 run in a row: handler_error: OSError: no route" in named[0]
    assert named[0].endswith("poller jobs show job0")
    assert "  jobs       3 more in trouble: poller jobs" in lines


def test_the_tab_key_offers_jobs(services: Services, jobs: Run) -> None:
    """From the catalogue."""
    assert completion.jobs("n") == ["nightly"]


def test_a_job_of_50_000_scopes_is_read_by_seeks(services: Services, jobs: Run) -> None:
    """No statement of list, show or history scans the ledger."""
    now_ms = database_clock.now_ms(services.engine)
    of = plan(services)
    blank = {
        "job": "sweep",
        "scope_kind": "target",
        "origin": "schedule",
        "status": "SUCCESS",
        "attempt": 1,
        "max_attempts": 3,
        "reentrant": True,
        "runner": "w1@a",
        "token": "",
        "started_ms": now_ms,
        "heartbeat_ms": now_ms,
        "stale_ms": now_ms,
        "finished_ms": now_ms,
        "duration_ms": 1,
        "dispatched_ms": of.plan_ms,
        "result": {},
        "error_code": "",
        "message": "",
        "plan_ms": of.plan_ms,
    }
    with services.engine.begin() as conn:
        conn.execute(sa.insert(job_runs), [{**blank, "scope_id": f"{n:05}"} for n in range(50_000)])

    scans = _scans(services, lambda: [jobs(), jobs("show", "sweep"), jobs("history", "sweep")])
    assert scans == []
    body = jobs("show", "sweep", "--json").json
    assert (len(body["scopes"]), body["more_scopes"], len(body["runs"])) == (20, True, 10)


def _scans(services: Services, act: Callable[[], object]) -> list[str]:
    """The steps of query plans that read all rows of the ledger."""
    statements: list[tuple[str, Any]] = []

    def remember(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if "job_runs" in statement:
            statements.append((statement, parameters))

    sa.event.listen(services.engine, "before_cursor_execute", remember)
    act()
    sa.event.remove(services.engine, "before_cursor_execute", remember)
    assert statements

    found = []
    with services.engine.connect() as conn:
        for statement, parameters in statements:
            steps = conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            for step in steps:
                detail = str(step[-1])
                if detail.startswith("SCAN job_runs") and "USING" not in detail:
                    found.append(f"{detail}: {statement}")
    return found
