"""`poller web`: the page, the API and the metrics."""

from __future__ import annotations

from poller import bootstrap
from poller.cli.output import render
from poller.cli.up import role_commands


def command() -> None:
    """Serve the page where the settings say."""
    from poller.web import web_process

    services = bootstrap.services()
    services.configure_logs()
    settings = services.settings
    port = role_commands.choose_port(
        "web_port", settings.web_port, web_process.DEFAULT_PORT, settings.web_bind, render.note
    )
    web_process.run(settings.web_bind, port)
