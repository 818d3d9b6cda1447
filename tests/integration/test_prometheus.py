"""Prometheus accepts our rules, and the page's metrics, as its own tool says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"


def promtool(*words: str, text: bytes = b"") -> None:
    program = shutil.which("promtool")
    if program is None:
        missing("promtool is not installed: apt install prometheus")
    done = subprocess.run(
        [program, *words], cwd=PROMETHEUS, input=text, capture_output=True, timeout=60
    )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "recording.yml", "alerts.yml"),
        ("test", "rules", "tests/alerts.yml"),
    ],
    ids=["config", "rules", "tests"],
)
def test_promtool_accepts_the_rules(words: tuple[str, ...]) -> None:
    """Each alert is quiet, then fires, on the series of its test."""
    promtool(*words)


def test_promtool_accepts_the_metrics_of_a_process() -> None:
    from poller.metering import process_metrics
    from poller.observability.exposition import text_format

    process_metrics.begin("worker")
    process_metrics.redis_seconds.observe(0.01, "finish")
    process_metrics.process_threads.set(3)
    promtool("check", "metrics", text=text_format.render([text_format.of_process("w", "worker")]))
