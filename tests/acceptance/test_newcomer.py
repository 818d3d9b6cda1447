"""A newcomer's path, as the documentation describes it and the script runs it: readings of a new
collector within a minute.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.conftest import missing
from tests.integration import layered

SCRIPT = Path(__file__).parents[1] / "newcomer"
PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"

pytestmark = [pytest.mark.alone, pytest.mark.timeout(240)]


def test_a_new_collector_has_readings_within_a_minute(tmp_path: Path) -> None:
    """A running `poller up` in a clean environment finds the collector by itself."""
    try:
        import hatchling  # noqa: F401
    except ImportError:
        missing("hatchling is not installed")
    layer = layered.on_top(tmp_path / "layer")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("POLLER_")}
    given = {
        "POLLER": str(layer.poller),
        "PIP": " ".join(layer.pip),
        "PIP_FLAGS": "--no-build-isolation --no-deps",
    }
    done = subprocess.run(
        [SCRIPT], env={**clean, **given}, capture_output=True, text=True, timeout=220
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr[-4000:]
    took = re.search(r"^([\d.]+) s from nothing to readings", done.stdout, re.MULTILINE)
    assert took is not None
    assert float(took[1]) < 60


def test_the_script_runs_the_commands_of_the_page() -> None:
    """Script and page have the same three commands, in the same order."""
    shown = (
        PAGE.read_text().partition("## In a minute")[2].partition("```sh\n")[2].partition("```")[0]
    )
    typed = [line.partition("#")[0].split()[:3] for line in shown.splitlines()]
    walked = re.findall(
        r"^step \$(POLLER|PIP) (\w+) (?:--quiet \$PIP_FLAGS )?(\S+)",
        SCRIPT.read_text(),
        re.MULTILINE,
    )
    assert [words[1] for words in typed[:3]] == [verb for _, verb, _ in walked]
