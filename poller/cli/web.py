"""`poller web`: the page, the API and the metrics."""

from __future__ import annotations

from poller import bootstrap
from poller.observability import logs


def command() -> None:
    """Serve the page where the settings say."""
    from poller.web import serve

    settings = bootstrap.services().settings
    logs.configure(settings.log_level, settings.log_format)
    serve.run(settings.web_bind, settings.web_port)
