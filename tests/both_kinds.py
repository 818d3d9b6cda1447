"""Runs the tests with real servers: those that measure time at once, and all others beside them with what CPU is left.

A test that measures time mostly waits, so the machine would idle; its few bursts come first, because the others are
`nice`. The exit status is 0 only if both are.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

FOLDERS = ["tests/acceptance", "tests/contract", "tests/integration", "tests/browser"]
PYTEST = [sys.executable, "-m", "pytest"]


def main() -> int:
    with tempfile.TemporaryFile() as said:
        timed = subprocess.Popen([*PYTEST, "-m", "alone", "tests/acceptance"], stdout=said, stderr=subprocess.STDOUT)
        others = subprocess.Popen(
            [*PYTEST, "-n", "2", "--dist", "loadfile", "-m", "not alone", *FOLDERS], preexec_fn=lambda: os.nice(19)
        )
        codes = [others.wait()]
        print("== those that measure time", flush=True)
        codes.append(timed.wait())
        said.seek(0)
        sys.stdout.buffer.write(said.read())
        sys.stdout.flush()
    return max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
