"""The router of one resource of the API."""

from __future__ import annotations

from fastapi import APIRouter

from poller.web.api.contract import problems
from poller.web.api.contract.idempotency import IdempotentRoute


def router(name: str) -> APIRouter:
    """Create the router of a resource: its path below /api/v1, and its title in the document."""
    return APIRouter(
        prefix=f"{problems.PREFIX}/{name}",
        tags=[name],
        responses=problems.COMMON,
        route_class=IdempotentRoute,
    )
