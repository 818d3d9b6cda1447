"""`poller web`: the page, the API and the metrics."""

from __future__ import annotations

from poller import bootstrap


def command() -> None:
    """Serve the page where the settings say."""
    from poller.web import serve

    services = bootstrap.services()
    services.configure_logs()
    serve.run(services.settings.web_bind, services.settings.web_port)
