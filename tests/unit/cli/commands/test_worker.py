"""`poller worker --memory-limit`: a limit that a large fleet would not fit is told, and not refused."""

from __future__ import annotations

import json

import pytest

from poller.cli import main
from poller.cli.commands import worker


@pytest.fixture(autouse=True)
def nobody(home: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process is started."""
    monkeypatch.setattr(worker.WorkerProcesses, "run", lambda *_: None)


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.run(["worker", *arguments]) == 0
    return capsys.readouterr().err


def test_a_limit_below_what_the_remembered_targets_take_is_warned_of(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process would be replaced whenever it knows the fleet. The setting that bounds it is named."""
    text = said(capsys, "--memory-limit", "1G")
    assert "--memory-limit is 1024 MiB" in text
    assert "50,000 targets (target_cache)" in text
    assert "POLLER_TARGET_CACHE" in text
    monkeypatch.setenv("POLLER_TARGET_CACHE", "20000")
    assert said(capsys, "--memory-limit", "1G") == ""


def test_a_limit_that_suffices_and_none_are_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--memory-limit", "2G") == ""
    assert said(capsys) == ""


def test_the_warning_is_an_object_where_all_lines_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLLER_LOG_FORMAT", "json")
    line = json.loads(said(capsys, "--memory-limit", "512M"))
    assert line["process"] == "poller"
    assert line["event"].startswith("warning: --memory-limit is 512 MiB")
