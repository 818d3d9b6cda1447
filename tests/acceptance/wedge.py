"""Faults of a worker's consumer, brought in with `celery worker -I tests.acceptance.wedge`: when the file named by
WEDGE_FILE is there, what it says happens to the process, once.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from celery.signals import worker_ready

from poller.workers.guard import consumer_watchdog

#: Not settings of ours, hence no POLLER_ in front.
FILE_VARIABLE = "WEDGE_FILE"
CHECK_VARIABLE = "WEDGE_CHECK_S"

consumer_watchdog.CHECK_S = float(os.environ.get(CHECK_VARIABLE, consumer_watchdog.CHECK_S))


def _block(consumer: Any) -> None:
    """Celery's own loop is stuck in some call."""
    consumer.hub.call_soon(time.sleep, 3600)


def _drop_consumer(consumer: Any) -> None:
    """The channel asks the broker for nothing any more, and nobody notices: as after a reset."""
    consumer.hub.call_soon(consumer.task_consumer.channel._active_queues.clear)


DEEDS = {"block": _block, "drop": _drop_consumer}


@worker_ready.connect
def _wait(sender: Any, **_: Any) -> None:
    threading.Thread(
        target=_wedge, args=(sender, Path(os.environ[FILE_VARIABLE])), daemon=True
    ).start()


def _wedge(consumer: Any, file: Path) -> None:
    while not file.exists():
        time.sleep(0.05)
    DEEDS[file.read_text()](consumer)
