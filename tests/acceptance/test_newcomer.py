"""A newcomer's path, as the documentation describes it and the script runs it: readings of a new
collector within a minute, and runs of a new job.
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


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of the script beside a running `poller up` in a clean environment."""
    try:
        import hatchling  # noqa: F401
    except ImportError:
        missing("hatchling is not installed")
    layer = layered.on_top(tmp_path_factory.mktemp("newcomer") / "layer")
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
    return done.stdout


def test_a_new_collector_has_readings_within_a_minute(told: str) -> None:
    """A running `poller up` finds the collector by itself."""
    took = re.search(r"^([\d.]+) s from nothing to readings", told, re.MULTILINE)
    assert took is not None
    assert float(took[1]) < 60


def test_a_new_job_is_picked_up_listed_and_run(told: str) -> None:
    """The same `poller up` finds the job by itself, runs its plan, and runs it on demand."""
    tables = told.partition("two runs of a job\n")[2].splitlines()
    titles, listed = (line.split("\t") for line in tables[:2])
    job = dict(zip(titles, listed, strict=True))
    assert (job["name"], job["state"], job["outcome"]) == ("nightly", "ok", "success")
    assert job["schedule"] == "*/5 * * * * UTC"
    titles, *rows = (line.split("\t") for line in tables[2:])
    runs = [dict(zip(titles, row, strict=True)) for row in rows]
    assert {(run["job"], run["outcome"], run["attempt"]) for run in runs} == {
        ("nightly", "success", "1 of 3")
    }
    assert len({run["plan"] for run in runs}) == len(runs) >= 2


def test_the_script_runs_the_commands_of_the_page() -> None:
    """Script and page have the same commands, in the same order."""
    typed = [*shown("In a minute")[:3], *shown("A job of your own")]
    walked = re.findall(
        r"^step \$(POLLER|PIP) (\w+) (?:--quiet \$PIP_FLAGS )?(\S+)",
        SCRIPT.read_text(),
        re.MULTILINE,
    )
    assert [words[1] for words in typed] == [verb for _, verb, _ in walked]


def shown(section: str) -> list[list[str]]:
    """The first words of each command that a section of the page shows first."""
    text = PAGE.read_text().partition(f"\n## {section}\n")[2]
    commands = text.partition("```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].split()[:3] for line in commands.splitlines()]
