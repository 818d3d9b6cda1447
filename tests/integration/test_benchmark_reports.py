"""The benchmark of reports runs, and a DSN makes no measurable difference to a poll."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from poller import errors
from poller.cli.up import embedded_server
from tests.conftest import missing

ROOT = Path(__file__).parents[2]


def test_a_dsn_does_not_make_polls_dearer(tmp_path: Path) -> None:
    """The benchmark runs at a size that takes seconds; the goal itself is for an idle machine."""
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POLLER_")}
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--results",
        str(tmp_path),
        "--size",
        "tiny",
        "reports",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=clean, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    figures = json.loads((tmp_path / "reports.json").read_text())["figures"]
    assert figures["poll_dsn_us"]["value"] < 2 * figures["poll_us"]["value"]
    assert figures["crash_us"]["value"] > 0
