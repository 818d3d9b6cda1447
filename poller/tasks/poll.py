"""`poller.poll`: one message, one batch of targets. The flow is in workers/polling.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poller.app import app

if TYPE_CHECKING:
    from poller.workers.polling import Poller


@app.task(name="poller.poll", bind=True, ignore_result=True)
def poll(self: Any, token: str, ids: list[int], attempt: int = 0) -> None:
    """Poll the targets `ids`, which were claimed under `token`."""
    _poller(self.request.hostname).poll(token, ids, attempt)


def _poller(hostname: str) -> Poller:
    from poller.workers import lifecycle

    return lifecycle.poller(hostname)
