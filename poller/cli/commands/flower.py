"""`poller flower`: Celery's own monitor with poller's settings, and a password beyond loopback.

Flower asks the workers for their queues once, when it starts; before that it shows the configured
queues. Workers subscribe to queues as these appear on the board, so the configuration follows it.
"""

from __future__ import annotations

import ipaddress
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from poller import bootstrap, errors
from poller.cli.output import render
from poller.cli.up import listen_ports
from poller.settings import Settings

if TYPE_CHECKING:
    from poller.state.board.moves import Board

DEFAULT_PORT = 5555
QUEUES_EVERY_S = 5.0

_OPTIONS = ("--max_tasks=5000", "--purge_offline_workers=600", "--logging=error")


def command() -> None:
    """Run Flower on the configured address. It is `celery -A poller flower` made safe."""
    services = bootstrap.services()
    settings = services.settings
    check(settings)
    port = listen_ports.choose_port(
        "flower_port", settings.flower_port, DEFAULT_PORT, settings.flower_bind, render.note
    )

    if settings.flower_basic_auth:
        # A password never goes on a command line.
        os.environ["FLOWER_BASIC_AUTH"] = settings.flower_basic_auth.get_secret_value()

    from poller.app import app

    follower = threading.Thread(target=_follow_queues, args=(app, services.board), daemon=True)
    follower.start()
    address = f"--address={settings.flower_bind}"
    app.start(["--quiet", "flower", address, f"--port={port}", *_OPTIONS])


def check(settings: Settings) -> None:
    """Refuse Flower without a password beyond loopback: Flower can stop workers."""
    if settings.flower_basic_auth is None and not _is_loopback(settings.flower_bind):
        raise errors.InvalidSetting(
            f"flower_bind: {settings.flower_bind} can be reached from outside, "
            "and Flower has no password",
            hint="set POLLER_FLOWER_BASIC_AUTH=user:password (or ..._FILE), "
            "or bind it to 127.0.0.1",
        )


def _follow_queues(app: Any, board: Board) -> None:
    """Copy the board's queues to the Celery configuration, for ever."""
    from kombu.entity import Queue

    queue: Callable[[str], Any] = Queue
    pause = threading.Event()

    while True:
        with suppress(errors.StoreError):  # Flower itself reports a broker that is away
            names = (app.conf.task_default_queue, *board.queues())
            app.conf.task_queues = [queue(name) for name in names]
        pause.wait(QUEUES_EVERY_S)


def _is_loopback(bind: str) -> bool:
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"
