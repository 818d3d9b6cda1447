"""`/api/v1/overview`: is the fleet polled, is that on time, and what failed."""

from __future__ import annotations

from fastapi import Request

from poller.web.api import overview_json
from poller.web.api.cluster import shared_overview
from poller.web.api.cluster.overview_types import OverviewDocument
from poller.web.api.contract import resources
from poller.web.api.contract.needs import ReadingAll

router = resources.router("overview")


@router.get("")
async def show_overview(call: ReadingAll, request: Request) -> OverviewDocument:
    """Show the fleet by state, lateness, leader, workers, queues and the last errors.

    The numbers are at most a second old.
    """
    overview, snapshot = await shared_overview.snapshot(request)
    stores = snapshot.stores
    fields = overview_json.document(overview, snapshot.health, stores.jobs, stores.alerts)
    return OverviewDocument(**fields)
