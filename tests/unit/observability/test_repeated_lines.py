"""A failure that repeats is one line a minute; other lines are never left out."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from poller.observability import logs, report_quota


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    logging.getLogger().handlers.clear()


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of the filter."""
    clock = [0.0]
    original = report_quota.Quota.__init__
    monkeypatch.setattr(
        report_quota.Quota,
        "__init__",
        lambda self, total: original(self, total, clock=lambda: clock[0]),
    )
    return clock


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_failure_that_repeats_is_said_once_and_counted(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """After a minute it is said again, with the number of lines left out."""
    logs.configure()
    for tick in range(250):
        now[0] = tick / 4
        logs.get("ours").error("tick_failed", error="MISCONF No space left on device")
    said = lines(capsys)
    assert len(said) == 2
    assert "unsaid" not in said[0]
    assert "unsaid_since_the_last=239" in said[1]


def test_different_failures_and_other_lines_are_all_said(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Events are no failures of ours, and an info line is not filtered at all."""
    logs.configure()
    for _ in range(3):
        logs.get("ours").info("saved", error="none")
        logs.get("ours").warning("worker_lost", message="w1 sent no heartbeat for 10 s")
    for number in range(3):
        logs.get("ours").error("target_refused", target=number, error="the same")
    assert len(lines(capsys)) == 9


def test_a_line_of_a_library_is_the_same_with_another_number(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Celery counts its attempts to connect."""
    logs.configure()
    for number in range(20):
        logging.getLogger("celery.worker").error("Cannot connect. Again in 2 s (%d/None)", number)
    now[0] = 61.0
    logging.getLogger("celery.worker").error("Cannot connect. Again in 2 s (21/None)")
    said = lines(capsys)
    assert len(said) == 2
    assert "unsaid_since_the_last=19" in said[1]


def test_lines_of_a_plugin_about_two_addresses_are_both_said(
    now: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the same line is left out."""
    logs.configure()
    for number in (1, 2, 2):
        logging.getLogger("acme_collector").warning("192.0.2.%d has an old firmware", number)
    assert len(lines(capsys)) == 2
