"""`poller flower`: Celery's own monitor with our settings. Beyond loopback it wants a password."""

from __future__ import annotations

import ipaddress
import os
import sys

from poller import errors
from poller import settings as settings_module
from poller.cli import roles
from poller.settings import Settings


def command() -> None:
    """Run Flower where the settings say. It is the same as `celery -A poller flower`, made safe."""
    settings = settings_module.load()
    check(settings)
    port = roles.choose_port("flower_port", settings.flower_port, 5555, settings.flower_bind)
    login = settings.flower_basic_auth
    role = roles.flower({}, settings.flower_bind, port, login.get_secret_value() if login else None)
    os.environ.update(role.env)
    os.execv(sys.executable, list(role.argv))  # noqa: S606  no shell on purpose


def check(settings: Settings) -> None:
    """Flower can stop workers: nobody but this machine may reach it without a password."""
    if settings.flower_basic_auth is None and not _is_loopback(settings.flower_bind):
        raise errors.InvalidSetting(
            f"flower_bind: {settings.flower_bind} can be reached from outside, and Flower has no password",
            hint="set POLLER_FLOWER_BASIC_AUTH=user:password (or ..._FILE), or bind it to 127.0.0.1",
        )


def _is_loopback(bind: str) -> bool:
    try:
        return ipaddress.ip_address(bind).is_loopback
    except ValueError:
        return bind == "localhost"
