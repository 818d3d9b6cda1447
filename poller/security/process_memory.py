"""Keeps the memory of a process, which holds decrypted credentials, out of core files.

Debuggers such as py-spy still work: the process stays dumpable for its own user, because the
supervisor and the black box read /proc of their children.
"""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

#: Which mappings a core file holds. A handler that core files are piped to ignores RLIMIT_CORE.
_FILTER = Path("/proc/self/coredump_filter")


def forbid_core_files() -> None:
    """Write no core file of this process and of the processes it starts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # not Linux, or /proc is read-only
        _FILTER.write_text("0")
