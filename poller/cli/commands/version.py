"""`poller version`: the versions that a bug report needs."""

from __future__ import annotations

import platform
from importlib.metadata import version

import poller
from poller.cli.output import render

#: The libraries that decide how polling behaves.
_LIBRARIES = ("celery", "kombu", "celery-redbeat", "redis", "sqlalchemy")


def command(as_json: render.Json = False) -> None:
    """Print the versions of poller, Python and the libraries that matter."""
    versions = {
        "poller": poller.__version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for name in _LIBRARIES:
        versions[name] = version(name)

    render.record("poller.version/1", versions, as_json)
