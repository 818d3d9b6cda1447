"""`poller worker --memory-limit`: a limit that is too low for a large fleet gets a warning."""

from __future__ import annotations

import json

import pytest

from poller.cli import main
from poller.cli.commands import worker


@pytest.fixture(autouse=True)
def no_process(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started."""
    monkeypatch.setattr(worker.WorkerProcesses, "run", lambda *_: None)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.run(["worker", *arguments]) == 0
    return capsys.readouterr().err


def test_a_limit_below_the_size_of_the_target_cache_is_warned_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process would be replaced again and again; the warning names the setting."""
    text = said(capsys, "--memory-limit", "512M")
    assert "--memory-limit is 512 MiB" in text
    assert "50,000 targets (target_cache)" in text
    assert "POLLER_TARGET_CACHE" in text
    monkeypatch.setenv("POLLER_TARGET_CACHE", "20000")
    assert said(capsys, "--memory-limit", "512M") == ""


def test_a_sufficient_limit_and_no_limit_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """There is no warning."""
    assert said(capsys, "--memory-limit", "1G") == ""
    assert said(capsys) == ""


def test_the_warning_is_json_if_the_log_format_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every line of the process is then one JSON object."""
    monkeypatch.setenv("POLLER_LOG_FORMAT", "json")
    line = json.loads(said(capsys, "--memory-limit", "512M"))
    assert line["process"] == "poller"
    assert line["event"].startswith("warning: --memory-limit is 512 MiB")
