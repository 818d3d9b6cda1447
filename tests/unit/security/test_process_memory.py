"""A process writes no core file of its memory."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import resource
from poller.security import process_memory
process_memory.forbid_core_files()
print(resource.getrlimit(resource.RLIMIT_CORE), open("/proc/self/coredump_filter").read().strip())
"""


def test_no_core_file_and_nothing_in_it() -> None:
    """Neither a file, nor the memory through a pipe to a handler, which ignores the limit."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "(0, 0) 00000000\n"
