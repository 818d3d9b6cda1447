"""`poller flower`: Celery's own monitor with poller's settings, and a password beyond loopback."""

from __future__ import annotations

from poller import bootstrap
from poller.cli.output import render
from poller.cli.up import listen_ports
from poller.security import network_exposure
from poller.settings import Settings

DEFAULT_PORT = 5555


def command() -> None:
    """Run Flower on the configured address. It is `celery -A poller flower` without its banner."""
    settings = bootstrap.services().settings
    check(settings)
    port = listen_ports.choose_port(
        "flower_port", settings.flower_port, DEFAULT_PORT, settings.flower_bind, render.note
    )

    from poller.app import app

    app.start(["--quiet", "flower", f"--port={port}", "--logging=error"])


def check(settings: Settings) -> None:
    """Refuse Flower without a login beyond loopback. Raises InvalidSetting."""
    has_login = network_exposure.has_flower_login(
        settings.flower_basic_auth, settings.proxy_user_header
    )
    network_exposure.check_flower(settings.flower_bind, has_login)
