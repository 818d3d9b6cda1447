"""The overview that all requests of a process share: at most one read of Redis per second."""

from __future__ import annotations

from fastapi import Request

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.api.snapshot import Snapshot, Snapshots


async def snapshot(request: Request) -> tuple[Overview, Snapshot]:
    """Return the newest overview, and the snapshot with its verdict. Raises StoreUnavailable."""
    snapshots: Snapshots = request.app.state.snapshots
    taken = await snapshots.get()
    if taken.overview is None or taken.error:
        raise errors.StoreUnavailable(taken.error)
    return taken.overview, taken


async def read(request: Request) -> Overview:
    """Return the newest overview. Raises StoreUnavailable."""
    overview, _ = await snapshot(request)
    return overview
