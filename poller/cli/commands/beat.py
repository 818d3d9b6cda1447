"""`poller beat`: the scheduler in the foreground, as `celery -A poller beat` with our settings."""

from __future__ import annotations

import os
import sys

from poller.alerts.receivers import registry
from poller.cli.up import role_commands
from poller.settings import load


def command() -> None:
    """Run the scheduler. Start it on two or three machines: one leads, the others stand by."""
    settings = load()
    registry.check(settings.receiver)

    role = role_commands.beat({})
    argv = [*role.argv, f"--loglevel={settings.log_level}"]

    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], argv)  # noqa: S606  our own interpreter, with fixed arguments
