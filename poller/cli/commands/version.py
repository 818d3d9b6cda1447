"""`poller version`: what to write into a bug report."""

from __future__ import annotations

import platform
from importlib.metadata import version

import poller
from poller.cli.output import render

#: What decides how polling behaves.
_LIBRARIES = ("celery", "kombu", "celery-redbeat", "redis", "sqlalchemy")


def command(as_json: render.Json = False) -> None:
    """Print the versions of poller, Python and the libraries that matter."""
    found = {
        "poller": poller.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    found |= {name: version(name) for name in _LIBRARIES}
    render.record("poller.version/1", found, as_json)
