"""`poller beat` as a process: it leads, leaves no files behind, and hands over when stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from poller.bootstrap import Services
from poller.state.cluster.leader_lock import Leadership

LEADS_WITHIN_S = 30
STOPS_WITHIN_S = 15

pytestmark = pytest.mark.timeout(120)


def wait_for(lock: str, services: Services, process: subprocess.Popen[str]) -> str:
    """Return the leader's token as soon as the lock is taken."""
    deadline = time.monotonic() + LEADS_WITHIN_S
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[1]
        token = services.redis.get(lock)
        if token:
            return str(token)
        time.sleep(0.05)
    process.kill()
    raise AssertionError(process.communicate()[1])


def test_poller_beat_leads_and_hands_over_at_sigterm(services: Services, tmp_path: Path) -> None:
    """The process itself leads, not a child; SIGTERM frees the lock and exits with 0."""
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "poller", "beat"],
        cwd=workdir,
        env={**os.environ, "POLLER_LOG_LEVEL": "INFO"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    token = wait_for(services.keys.lock, services, process)
    assert f":{process.pid}:" in token

    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=STOPS_WITHIN_S)

    assert process.returncode == 0, log
    assert "leadership_taken" in log
    assert "leadership_handed_over" in log
    assert list(workdir.iterdir()) == []
    _, newly_taken = Leadership(services.redis, services.keys, 4_000).take()
    assert newly_taken


def test_poller_beat_logs_at_the_level_of_the_settings(services: Services, tmp_path: Path) -> None:
    """POLLER_LOG_LEVEL=ERROR silences the INFO lines of leadership."""
    process = subprocess.Popen(
        [sys.executable, "-m", "poller", "beat"],
        cwd=tmp_path,
        env={**os.environ, "POLLER_LOG_LEVEL": "ERROR"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(services.keys.lock, services, process)

    process.terminate()
    _, log = process.communicate(timeout=STOPS_WITHIN_S)

    assert (process.returncode, log) == (0, "")


def test_a_bad_setting_is_refused_before_celery_starts(home: Path, tmp_path: Path) -> None:
    """The error names the setting, and the exit code is that of a configuration error."""
    done = subprocess.run(
        [sys.executable, "-m", "poller", "beat"],
        cwd=tmp_path,
        env={**os.environ, "POLLER_BATCH_SIZE": "many"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "batch_size" in done.stderr
