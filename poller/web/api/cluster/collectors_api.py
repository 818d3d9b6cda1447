"""`/api/v1/collectors`: installed collectors, their options as JSON schema, and their health."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel

from poller import errors
from poller.collectors import api
from poller.presentation.cluster.collectors_json import BrokenCollector, CollectorItem
from poller.service.cluster import collector_listing
from poller.web.api.contract import resources
from poller.web.api.contract.needs import Reading

router = resources.router("collectors")


class CollectorList(BaseModel):
    """The collectors of the web role's machine."""

    api_version: int
    api_served: list[int]
    items: list[CollectorItem]
    broken: list[BrokenCollector]


@router.get("")
def list_collectors(call: Reading) -> CollectorList:
    """List the installed collectors, and those that cannot be used."""
    found = collector_listing.read(call.services)
    return CollectorList(
        api_version=api.API_VERSION,
        api_served=sorted(api.SERVED),
        items=[CollectorItem(**item) for item in found.items()],
        broken=[BrokenCollector(**asdict(each)) for each in found.registry.broken],
    )


@router.get("/{name}")
def show_collector(
    call: Reading, name: Annotated[str, Path(max_length=100, description="Its name.")]
) -> CollectorItem:
    """Show one collector."""
    found = collector_listing.read(call.services)
    try:
        [item] = found.items(name)
    except errors.CollectorMissing as error:
        raise errors.NotFound(error.message, error.cause, error.hint) from None
    return CollectorItem(**item)
