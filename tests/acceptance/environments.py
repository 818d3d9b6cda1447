"""A clean environment with poller and plugins installed as wheels, as `pip install` does.

Dependencies of poller come from the environment of the tests instead of a download (60 MB), by a
.pth file that sorts behind every installed package. This checkout is not on the path.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import missing

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
OFFLINE = ["--no-index", "--no-deps"]


def wheels(sources: Sequence[Path], directory: Path) -> list[Path]:
    """Build wheels without a network."""
    if importlib.util.find_spec("hatchling") is None:
        missing("hatchling is not installed")
    command = [*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", directory, *sources]
    subprocess.run(command, check=True, timeout=100)
    return sorted(directory.glob("*.whl"))


class Environment:
    def __init__(self, directory: Path, installed: Sequence[Path]) -> None:
        venv.create(directory, with_pip=False)
        self.python = directory / "bin" / "python"
        self.poller = directory / "bin" / "poller"
        command = [*PIP, "--python", self.python, "install", *OFFLINE, *installed]
        subprocess.run(command, check=True, timeout=60)
        [packages] = directory.glob("lib/python*/site-packages")
        (packages / "zz-lent.pth").write_text(
            f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n"
        )
