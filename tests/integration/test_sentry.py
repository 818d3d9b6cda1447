"""Reports to Sentry, received by a real HTTP server on loopback: contents, limits, delays."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from poller import errors
from poller.domain.jobs.job_run import Plan
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import JobTerms
from poller.observability import logs, sentry
from poller.observability.check_ins import CheckIns
from poller.security.redaction import Redactor
from tests.ingest import KEY, Ingest

SECRET = "s3cr3t-community"


@pytest.fixture
def ingest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ingest]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Ingest() as server:
        yield server


@pytest.fixture(autouse=True)
def quiet_root() -> Iterator[None]:
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    root.handlers[:] = before


def attached(dsn: str, per_minute: int = 1000) -> sentry.Reporter:
    """A reporter behind the logs as a role configures them."""
    made = sentry.Reporter(
        sentry.Destination(dsn, "test", per_minute), "worker", Redactor([SECRET]).text
    )
    logs.configure()
    logging.getLogger().addHandler(made)
    return made


def by_event(name: str) -> Any:
    return lambda event: event["logentry"]["formatted"] == name


def fail(error: BaseException, cause: BaseException | None = None) -> None:
    local_secret = SECRET  # noqa: F841  must not leave with the frame
    raise error from cause


def logged(
    event: str, error: BaseException, cause: BaseException | None = None, **facts: object
) -> None:
    try:
        fail(error, cause)
    except BaseException as caught:
        logs.get("poller.test").error(event, error=str(caught), **facts)


def end_marker(ingest: Ingest) -> None:
    """Reports arrive in order: a report missing before this one was not sent."""
    logged("the_end", RuntimeError("end"))
    ingest.wait_for(by_event("the_end"))


def test_a_bug_arrives_with_its_frames(ingest: Ingest) -> None:
    """The report has class, text, place, role and release, and nothing from integrations."""
    attached(ingest.dsn)
    logged("it_broke", KeyError("x"), batch="b1")
    event = ingest.wait_for(by_event("it_broke"))
    (value,) = event["exception"]["values"]
    assert (value["type"], value["stacktrace"]["frames"][-1]["function"]) == ("KeyError", "fail")
    assert event["tags"] == {"role": "worker", "error_class": "KeyError"}
    assert event["extra"]["batch"] == "b1"
    assert event["environment"] == "test"
    assert event["release"].startswith("poller@")
    assert event["fingerprint"][:4] == ["poller", "poller.test", "it_broke", "KeyError"]
    assert event["sdk"]["integrations"] == []
    assert not {"user", "request", "breadcrumbs", "modules"} & {k for k, v in event.items() if v}
    assert "trace" not in event.get("contexts", {})
    assert ingest.others == []
    assert ingest.paths == ["/api/42/envelope/"]


def test_a_store_failure_arrives_with_its_cause(ingest: Ingest) -> None:
    """Store failures are grouped by error class and cause, not by the logger."""
    attached(ingest.dsn)
    logged("runs_lost", errors.StoreUnavailable("cannot use the database"), OSError("refused"))
    event = ingest.wait_for(by_event("runs_lost"))
    assert event["fingerprint"] == ["store", "StoreUnavailable", "OSError"]
    assert [value["type"] for value in event["exception"]["values"]] == [
        "OSError",
        "StoreUnavailable",
    ]


@pytest.mark.parametrize(
    "error",
    [
        errors.DeviceTimeout("no answer"),
        errors.DeviceAuthFailed("no"),
        errors.DeviceProtocolError("rubbish"),
        errors.InvalidSetting("redis_url: no"),
        errors.SchemaMismatch("old"),
        KeyboardInterrupt(),
        SystemExit(1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_devices_trouble_and_an_operators_mistake_are_not_reported(
    ingest: Ingest, error: BaseException
) -> None:
    """A dead router never pages a developer."""
    attached(ingest.dsn)
    logged("it_happened", error)
    end_marker(ingest)
    assert [event["logentry"]["formatted"] for event in ingest.events] == ["the_end"]


def test_warnings_are_not_reported(ingest: Ingest) -> None:
    """The lowest reported level is ERROR."""
    attached(ingest.dsn)
    logs.get("poller.test").warning("leases_lost", count=3)
    end_marker(ingest)
    assert len(ingest.events) == 1


def test_collectors_are_grouped_by_name_and_error_class(ingest: Ingest) -> None:
    """A plugin's bug is one issue for all devices and all texts."""
    attached(ingest.dsn)
    for collector, error in (
        ("acme", KeyError("1")),
        ("acme", KeyError("2")),
        ("acme", ValueError()),
        ("b", KeyError()),
    ):
        logging.getLogger("poller.collectors").error(
            "collector_crashed", exc_info=error, extra={"collector": collector}
        )
    end_marker(ingest)
    prints = [event["fingerprint"] for event in ingest.events[:-1]]
    assert prints == [
        ["collector", name, kind]
        for name, kind in (("acme", "KeyError"), ("acme", "ValueError"), ("b", "KeyError"))
    ]
    assert ingest.events[0]["tags"]["collector"] == "acme"


def test_no_secret_leaves(ingest: Ingest) -> None:
    """Message, exception, cause, facts and frames are scrubbed; the DSN's key is masked too."""
    attached(ingest.dsn)
    logged(
        "it_broke",
        ValueError(f"{SECRET} refused by redis://:hunter22@h/0"),
        OSError(f"community={SECRET}x, dsn {ingest.dsn}"),
        deep={"list": [{"priv_key": "k3y", "text": SECRET}]},
        community="pub",
    )
    logging.getLogger("library").error("cannot log in with %s", SECRET)
    end_marker(ingest)
    assert len(ingest.events) == 3
    sent = b"".join(ingest.bodies).decode()
    for secret in (SECRET, "hunter22", '"k3y"', '"pub"', KEY):
        assert secret not in sent
    without_source_line = sent.replace("local_secret = ", "")
    assert "local_secret" not in without_source_line
    assert '"vars"' not in sent


def test_reports_are_limited_and_count_the_suppressed_ones(
    ingest: Ingest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One bug is reported once a minute; different bugs share a total."""
    now = [0.0]
    reporter = attached(ingest.dsn, per_minute=3)
    monkeypatch.setattr(reporter._quota, "_clock", lambda: now[0])
    for _ in range(100):
        logged("same", KeyError("x"))
    for number in range(50):
        logged(f"different_{number}", KeyError("x"))
    now[0] = 61.0
    logged("same", KeyError("x"))
    event = ingest.wait_for(lambda event: event["extra"]["unsaid_since_the_last"] == 99)
    assert event["logentry"]["formatted"] == "same"
    assert len(ingest.events) == 4


def test_a_thread_that_dies_is_reported(ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> None:
    """An uncaught exception of a thread is reported, and Python still prints it."""
    printed: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", printed.append)
    monkeypatch.setattr("sys.excepthook", lambda *_: None)
    sentry.install(attached(ingest.dsn))
    thread = threading.Thread(target=fail, args=(LookupError("gone"),))
    thread.start()
    thread.join()
    event = ingest.wait_for(by_event("thread_died"))
    assert event["exception"]["values"][0]["type"] == "LookupError"
    assert len(printed) == 1


def test_a_forked_child_reports_by_itself(ingest: Ingest) -> None:
    """A child of a prefork worker reports on a connection of its own."""
    import os

    attached(ingest.dsn)
    logged("in_the_parent", KeyError("x"))
    ingest.wait_for(by_event("in_the_parent"))
    child = os.fork()
    if child == 0:
        try:
            logged("in_the_child", KeyError("x"))
            time.sleep(2)  # then it ends without a flush
        finally:
            os._exit(0)
    ingest.wait_for(by_event("in_the_child"))
    logged("later_in_the_parent", KeyError("x"))
    ingest.wait_for(by_event("later_in_the_parent"))
    os.waitpid(child, 0)


@pytest.mark.parametrize("kind", ["slow", "gone"])
def test_a_slow_or_absent_server_delays_nothing(
    kind: str, free_port: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A logged error returns at once, and the number of waiting reports is bounded."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Ingest(answer_s=60) as server:
        reporter = attached(
            server.dsn if kind == "slow" else f"http://{KEY}@127.0.0.1:{free_port}/1"
        )
        logged("warm_up", KeyError("x"))
        began = time.monotonic()
        for number in range(200):
            logged(f"different_{number}", KeyError("x"))
        assert time.monotonic() - began < 5
        client = reporter._connected()
        assert client.transport is not None
        assert client.transport._worker._queue.qsize() <= sentry.QUEUE_SIZE
        began = time.monotonic()
        reporter.flush_at_exit()  # no error was fatal, so a stop does not wait
        assert time.monotonic() - began < 0.1
    if kind == "gone":
        until = time.monotonic() + 10
        log = ""
        while "report_not_delivered" not in log and time.monotonic() < until:
            log += capsys.readouterr().err
        assert log.count("report_not_delivered") == 1
        assert KEY not in log


def test_a_report_that_cannot_be_scrubbed_is_not_sent(
    ingest: Ingest, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the redactor fails, the report is dropped and later reports arrive."""
    reporter = attached(ingest.dsn)
    redact = reporter._redact
    reporter._redact = lambda text: text[10**6]
    logged("it_broke", KeyError("x"))
    reporter._redact = redact
    end_marker(ingest)
    assert [event["logentry"]["formatted"] for event in ingest.events] == ["the_end"]


def test_a_job_checks_in(ingest: Ingest) -> None:
    """Sentry gets begin and end of a run with the schedule of its job, and no scope or secret."""
    reporter = attached(ingest.dsn)
    check_ins = CheckIns(reporter.send)
    nightly = JobTerms("nightly", Cron("0 2 * * *", "Europe/Amsterdam"), description=SECRET)
    plan = Plan("nightly", "site", SECRET, 1_700_000_000_000)
    check_in_id = check_ins.began(nightly, plan, 1)
    check_ins.ended(nightly, check_in_id, is_ok=False, duration_s=2.5)
    end_marker(ingest)
    began, ended = ingest.check_ins
    assert [(each["monitor_slug"], each["status"]) for each in (began, ended)] == [
        ("nightly", "in_progress"),
        ("nightly", "error"),
    ]
    assert began["check_in_id"] == ended["check_in_id"]
    assert ended["duration"] == 2.5
    assert ended["environment"] == "test"
    assert ended["monitor_config"]["schedule"] == {"type": "crontab", "value": "0 2 * * *"}
    assert ended["monitor_config"]["timezone"] == "Europe/Amsterdam"
    assert SECRET not in b"".join(ingest.bodies).decode()
    assert ingest.others == []


def test_a_check_in_to_an_absent_server_delays_nothing(
    free_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check-ins are dropped when too many wait, and an unusable client fails no run."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Ingest(answer_s=60) as silent:
        reporter = attached(silent.dsn)
        check_ins = CheckIns(reporter.send)
        began = time.monotonic()
        for number in range(300):
            terms = JobTerms(f"job-{number}", Cadence(60_000))
            check_in_id = check_ins.began(terms, Plan(terms.name, "global", "global", 0), 1)
            check_ins.ended(terms, check_in_id, is_ok=True, duration_s=0.1)
        assert time.monotonic() - began < 5
        monkeypatch.setattr(reporter, "_connected", lambda: 1 // 0)
        check_ins.ended(JobTerms("last", Cadence(60_000)), "id", is_ok=True, duration_s=0.1)


def test_a_missing_client_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A DSN without the client is an error that names the package to install."""
    monkeypatch.setattr(sentry, "find_spec", lambda _: None)
    with pytest.raises(errors.InvalidSetting, match="sentry_dsn is set") as caught:
        attached(f"http://{KEY}@127.0.0.1:9/1")
    assert "poller[sentry]" in caught.value.hint
    assert KEY not in repr(sentry.Destination(f"http://{KEY}@127.0.0.1:9/1", "test", 1))
