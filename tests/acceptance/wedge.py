"""Faults of a worker's consumer, loaded with `celery worker -I tests.acceptance.wedge`.

When the file named by WEDGE_FILE appears, the fault that it names happens to the process, once.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from celery.signals import worker_ready

from poller.workers.guard import consumer_watchdog

#: These are no settings of poller, so they have no POLLER_ prefix.
FILE_VARIABLE = "WEDGE_FILE"
CHECK_VARIABLE = "WEDGE_CHECK_S"

consumer_watchdog.CHECK_S = float(os.environ.get(CHECK_VARIABLE, consumer_watchdog.CHECK_S))


def _block(consumer: Any) -> None:
    """Block Celery's hub."""
    consumer.hub.call_soon(time.sleep, 3600)


def _drop_consumer(consumer: Any) -> None:
    """Make the channel request no more messages, silently, as after a broker reset."""
    consumer.hub.call_soon(consumer.task_consumer.channel._active_queues.clear)


FAULTS = {"block": _block, "drop": _drop_consumer}


@worker_ready.connect
def _start(sender: Any, **_: Any) -> None:
    file = Path(os.environ[FILE_VARIABLE])
    threading.Thread(target=_wait, args=(sender, file), daemon=True).start()


def _wait(consumer: Any, file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)
    FAULTS[file.read_text()](consumer)
