"""`poller web`: the page, the API and the metrics."""

from __future__ import annotations

from poller import bootstrap
from poller.cli.output import render
from poller.cli.up import listen_ports
from poller.service.access import login_demand


def command() -> None:
    """Serve the page on the configured address."""
    from poller.web import web_process

    services = bootstrap.services()
    services.configure_logs()
    settings = services.settings
    login_demand.check_exposure(services)
    port = listen_ports.choose_port(
        "web_port", settings.web_port, web_process.DEFAULT_PORT, settings.web_bind, render.note
    )
    web_process.run(settings.web_bind, port)
