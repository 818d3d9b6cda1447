"""A worker process is set up whole, or it ends: Celery goes on after an exception of a handler."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from celery.signals import worker_init, worker_process_init
from structlog.testing import capture_logs

from poller import bootstrap, errors
from poller.plugins import Broken
from poller.workers import lifecycle
from poller.workers.process import database_wait, worker_process
from poller.workers.process.worker_process import ProcessState

FAILURES = [
    (errors.InvalidSetting("batch_size: too large"), os.EX_CONFIG),
    (errors.StoreUnavailable("cannot use the database"), os.EX_TEMPFAIL),
    (RuntimeError("a bug"), os.EX_SOFTWARE),
]


class Worker:
    """The sender of Celery's signal."""

    hostname = "w@host"


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch) -> None:
    services = SimpleNamespace(
        configure_logs=lambda: None,
        publish_metrics=lambda role, process: None,
        start_traces=lambda role: None,
    )
    monkeypatch.setattr(bootstrap, "services", lambda: services)
    monkeypatch.setattr(worker_process, "state", ProcessState())
    monkeypatch.setattr(lifecycle, "END_PAUSE_S", 0.0)


def failing(error: Exception) -> object:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.mark.parametrize(("error", "exit_code"), FAILURES, ids=["setting", "store", "bug"])
def test_a_worker_that_cannot_be_set_up_ends(
    monkeypatch: pytest.MonkeyPatch, error: Exception, exit_code: int
) -> None:
    """Its supervisor starts another, and learns from the code whether that can help."""
    monkeypatch.setattr(lifecycle, "_configure", failing(error))
    with pytest.raises(SystemExit) as ended:
        worker_init.send(sender=Worker())
    assert ended.value.code == exit_code


@pytest.mark.parametrize(("error", "exit_code"), FAILURES, ids=["setting", "store", "bug"])
def test_a_prefork_child_that_cannot_be_set_up_ends(
    monkeypatch: pytest.MonkeyPatch, error: Exception, exit_code: int
) -> None:
    """Otherwise it would poll with the connections of its parent."""
    monkeypatch.setattr(worker_process.state, "pid", os.getpid() + 1)
    monkeypatch.setattr(worker_process.state, "children", SimpleNamespace())
    monkeypatch.setattr(worker_process, "become_child", failing(error))
    with pytest.raises(SystemExit) as ended:
        worker_process_init.send(sender="w@host")
    assert ended.value.code == exit_code


def test_a_starting_worker_waits_for_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses grow, and the same failure is logged once."""
    results = [errors.StoreUnavailable("cannot use the database", "refused")] * 5
    pauses: list[float] = []

    def check(_engine: object) -> None:
        if results:
            raise results.pop()

    monkeypatch.setattr(database_wait.revision, "check", check)
    with capture_logs() as lines:
        database_wait.wait_for_database(SimpleNamespace(), pauses.append)  # type: ignore[arg-type]
    assert pauses == [0.5, 1.0, 2.0, 4.0, 5.0]
    assert [line["event"] for line in lines] == ["database_awaited", "database_reached"]
    assert "refused" in lines[0]["error"]


def test_a_database_without_tables_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has to upgrade it."""
    monkeypatch.setattr(
        database_wait.revision, "check", failing(errors.SchemaMismatch("no tables yet"))
    )
    with pytest.raises(errors.SchemaMismatch):
        database_wait.wait_for_database(SimpleNamespace())  # type: ignore[arg-type]


def test_plugins_that_cannot_be_used_are_logged_by_name() -> None:
    """Collectors and jobs alike, with the package and the reason."""
    collectors = SimpleNamespace(
        broken=(Broken("olt", "acme-olt 1.0", "ImportError: x"),), deprecated={}
    )
    jobs = SimpleNamespace(
        broken=(Broken("nightly", "acme-jobs 1.0", "SystemExit"),), deprecated={"tidy": "ends"}
    )
    services = SimpleNamespace(registry=collectors, jobs=jobs)
    with capture_logs() as lines:
        lifecycle._log_plugin_problems(services)  # type: ignore[arg-type]
    assert [(line["event"], line["name"]) for line in lines] == [
        ("collector_unusable", "olt"),
        ("job_unusable", "nightly"),
        ("job_deprecated", "tidy"),
    ]
    assert (lines[1]["distribution"], lines[1]["reason"]) == ("acme-jobs 1.0", "SystemExit")
