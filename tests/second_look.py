"""Runs pytest, and gives tests that failed beside others one more try on a quiet machine.

Most of our tests start real servers and processes and wait for deadlines. On two cores, three of
them at a time now and then miss a deadline that they meet alone. A change that breaks something
fails the second try too. Failures beyond MOST_TRIED_AGAIN are no accident and are not tried again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MOST_TRIED_AGAIN = 12
TESTS_FAILED = 1  # pytest's exit code; others mean that the run itself broke
LAST_FAILED = Path(".venv/.pytest_cache/v/cache/lastfailed")  # below pytest's cache_dir


def main(arguments: list[str]) -> int:
    """Run pytest once, and its few failures a second time; return pytest's last exit code."""
    LAST_FAILED.unlink(missing_ok=True)
    code = pytest(arguments)
    failed = failures() if code == TESTS_FAILED else []
    if not 1 <= len(failed) <= MOST_TRIED_AGAIN:
        return code
    say(f"{len(failed)} failed beside other tests; once more, one at a time:", failed)
    code = pytest(["-n", "0", *failed])
    if code == 0:
        say("Passed alone, failed beside other tests: a deadline that is too tight?", failed)
    return code


def pytest(arguments: list[str]) -> int:
    """Run pytest in a process of its own, so that the second run starts from nothing."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def failures() -> list[str]:
    """Return the names of the tests that failed in the last run."""
    return sorted(json.loads(LAST_FAILED.read_text())) if LAST_FAILED.exists() else []


def say(title: str, names: list[str]) -> None:
    """Print a title and the names below it."""
    print(f"== {title}", *names, sep="\n   ", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
