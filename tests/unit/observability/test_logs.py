"""One log line per event, as text or JSON, without secrets of ours, libraries or exceptions."""

from __future__ import annotations

import json
import logging

import pytest
import redis

from poller import bootstrap
from poller.observability import logs
from poller.settings import Settings


@pytest.fixture(autouse=True)
def restored() -> object:
    yield
    logging.getLogger().handlers.clear()


def services(monkeypatch: pytest.MonkeyPatch, form: str) -> bootstrap.Services:
    monkeypatch.setenv("POLLER_REDIS_URL", "redis://:hunter2-redis@127.0.0.1:1/0")
    monkeypatch.setenv("POLLER_FLOWER_BASIC_AUTH", "ops:hunter2-flower")
    monkeypatch.setenv("POLLER_LOG_FORMAT", form)
    return bootstrap.Services(Settings())


@pytest.mark.parametrize("form", ["text", "json"])
def test_no_secret_reaches_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """Fields, texts, library records and tracebacks are redacted."""
    made = services(monkeypatch, form)
    made.configure_logs()
    made.redactor.remember("device-secret")
    logs.get("ours").info(
        "thing_happened", detail={"text": "it said device-secret", "password": "x"}, community="c"
    )
    logging.getLogger("library").error(
        "cannot connect with %s to %s", "hunter2-redis", "redis://:other@host/0"
    )
    try:
        raise ValueError("hunter2-flower is wrong")
    except ValueError:
        logs.get("ours").exception("it_broke")
    log = capsys.readouterr().err
    assert "thing_happened" in log
    assert "ValueError" in log
    for secret in ("hunter2", "device-secret", ":other@"):
        assert secret not in log


def test_json_lines_are_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A JSON line has time, level, logger, event and facts."""
    services(monkeypatch, "json").configure_logs()
    logs.get("ours").warning("leases_lost", count=3)
    record = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert (record["event"], record["count"], record["level"], record["logger"]) == (
        "leases_lost",
        3,
        "warning",
        "ours",
    )
    assert record["timestamp"].endswith("Z")


@pytest.mark.parametrize(
    "error", [redis.ConnectionError("reset by peer"), ConnectionRefusedError("reset by peer")]
)
def test_a_lost_connection_of_celery_is_one_line(
    capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    """Celery's beat logs each lost connection with three tracebacks; a bug keeps its traceback."""
    logs.configure()
    for logger, problem in (("celery.beat", error), ("celery.beat", ValueError("a bug"))):
        try:
            raise problem
        except Exception:
            logging.getLogger(logger).exception("beat pidbox connection error")
    log = capsys.readouterr().err
    assert log.count("Traceback") == 1
    assert "error='reset by peer'" in log.splitlines()[0]
    assert "ValueError: a bug" in log
