"""poller: a distributed polling platform for network fleets, on Celery.

Importing the package is cheap: the Celery application is only built at its first use.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "celery":  # the attribute `celery -A poller ...` looks for
        return _celery()
    raise AttributeError(f"module 'poller' has no attribute {name!r}")


def _celery() -> Any:
    from poller import errors

    try:
        from poller.app import app
    except errors.PollerError as error:
        raise SystemExit(f"error[{error.code}]: {error}\n  try: {error.hint}") from None
    return app
