"""The usage of this process: CPU time, memory, files, threads."""

from __future__ import annotations

import os
import resource
import threading
import time
from contextlib import suppress

from poller.metering import process_metrics


def measure() -> None:
    """Set the metrics of every process."""
    process_metrics.process_cpu.set_total(time.process_time())
    process_metrics.process_memory.set(resident_bytes())
    process_metrics.process_threads.set(threading.active_count())
    process_metrics.process_seen.set(time.time())
    with suppress(OSError):
        process_metrics.process_files.set(len(os.listdir("/proc/self/fd")))


def resident_bytes() -> int:
    """The memory that this process has in RAM."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
