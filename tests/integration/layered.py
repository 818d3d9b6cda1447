"""An environment on top of the one that runs the tests. Packages installed into it go with it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.conftest import missing


class Layer:
    """An environment with poller and every package of the tests; `install` adds packages to this
    layer only.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        venv.create(directory, with_pip=False)
        below = sysconfig.get_path("purelib")
        site = Path(
            sysconfig.get_path("purelib", vars={"base": str(directory), "platbase": str(directory)})
        )
        (site / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
        self.python = directory / "bin" / "python"
        script = (
            f"#!{self.python}\nimport sys\nfrom poller.cli.main import main\nsys.exit(main())\n"
        )
        self.poller = directory / "bin" / "poller"
        self.poller.write_text(script)
        self.poller.chmod(0o755)

    @property
    def pip(self) -> list[str]:
        return [str(self.python), "-m", "pip", "--disable-pip-version-check"]

    def install(self, *packages: Path) -> None:
        """Install packages without an index; the build backend is among the packages of the
        tests.
        """
        try:
            import hatchling  # noqa: F401
        except ImportError:
            missing("hatchling is not installed")
        self.run(
            *self.pip,
            "install",
            "--quiet",
            "--no-build-isolation",
            "--no-deps",
            *map(str, packages),
        )

    def run(
        self,
        *words: str,
        cwd: Path | None = None,
        env: dict[str, str] | None = None,
        stdin: str = "",
    ) -> str:
        """Run a command and return its output. A failure shows the output and the errors."""
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("POLLER_", "PYTEST_"))
        }
        done = subprocess.run(
            words,
            cwd=cwd,
            env={**clean, **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout


def on_top(directory: Path) -> Layer:
    assert sys.prefix != sys.base_prefix, "the tests run in an environment of their own"
    return Layer(directory)
