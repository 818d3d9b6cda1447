"""`poller flower`: Celery's own monitor with our settings and queues. Beyond loopback it wants a password.

Flower asks the workers for their queues once, when it starts, and shows those of the configuration until one has
answered. Our workers take up queues as they appear on the board, so the configuration is kept in step with it.
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
from poller.cli.up import role_commands
from poller.settings import Settings

if TYPE_CHECKING:
    from poller.state.board.moves import Board

DEFAULT_PORT = 5555
QUEUES_EVERY_S = 5.0

_OPTIONS = ("--max_tasks=5000", "--purge_offline_workers=600", "--logging=error")


def command() -> None:
    """Run Flower where the settings say. It is the same as `celery -A poller flower`, made safe."""
    services = bootstrap.services()
    settings = services.settings
    check(settings)
    port = role_commands.choose_port(
        "flower_port", settings.flower_port, DEFAULT_PORT, settings.flower_bind, render.note
    )
    if settings.flower_basic_auth:
        os.environ["FLOWER_BASIC_AUTH"] = (
            settings.flower_basic_auth.get_secret_value()
        )  # never on a command line
    from poller.app import app

    threading.Thread(target=_keep_queues, args=(app, services.board), daemon=True).start()
    app.start(
        ["--quiet", "flower", f"--address={settings.flower_bind}", f"--port={port}", *_OPTIONS]
    )


def check(settings: Settings) -> None:
    """Flower can stop workers: nobody but this machine may reach it without a password."""
    if settings.flower_basic_auth is None and not _is_loopback(settings.flower_bind):
        raise errors.InvalidSetting(
            f"flower_bind: {settings.flower_bind} can be reached from outside, and Flower has no password",
            hint="set POLLER_FLOWER_BASIC_AUTH=user:password (or ..._FILE), or bind it to 127.0.0.1",
        )


def _keep_queues(app: Any, board: Board) -> None:
    from kombu.entity import Queue

    queue: Callable[[str], Any] = Queue
    pause = threading.Event()
    while True:
        with suppress(errors.StoreError):  # Flower itself says when its broker is away
            app.conf.task_queues = [
                queue(name) for name in (app.conf.task_default_queue, *board.queues())
            ]
        pause.wait(QUEUES_EVERY_S)


def _is_loopback(bind: str) -> bool:
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"
