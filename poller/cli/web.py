"""`poller web`: the page, the API and the metrics."""

from __future__ import annotations

from poller import bootstrap
from poller.cli import render, roles


def command() -> None:
    """Serve the page where the settings say."""
    from poller.web import serve

    services = bootstrap.services()
    services.configure_logs()
    settings = services.settings
    port = roles.choose_port("web_port", settings.web_port, serve.DEFAULT_PORT, settings.web_bind, render.note)
    serve.run(settings.web_bind, port)
