"""`/api/v1/collectors`: installed collectors, their options as JSON schema, and their health."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from operator import attrgetter
from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, Field

from poller import errors
from poller.collectors import api
from poller.presentation import formatting
from poller.presentation.cluster import collector_stats_json
from poller.presentation.cluster.collector_stats_json import CollectorStats, SlowTargetItem
from poller.presentation.cluster.collectors_json import BrokenCollector, CollectorItem
from poller.service.cluster import collector_figures, collector_listing
from poller.web.api.contract import resources
from poller.web.api.contract.needs import Reading, ReadingAll

router = resources.router("collectors")

Name = Annotated[str, Path(max_length=100, description="Its name.")]


class CollectorList(BaseModel):
    """The collectors of the web role's machine."""

    api_version: int
    api_served: list[int]
    items: list[CollectorItem]
    broken: list[BrokenCollector]


class CollectorStatsList(BaseModel):
    """The figures of all collectors that are used or that polled."""

    since: datetime = Field(description="Polls are counted from here: a day ago, or later.")
    items: list[CollectorStats]


class CollectorStatsBody(CollectorStats):
    """The figures of one collector, with its slowest targets."""

    since: datetime
    slowest: list[SlowTargetItem]
    slowest_day: datetime | None = Field(
        description="The UTC day whose polls they are of; null: of the newest polls."
    )


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


@router.get("/-/stats")
def list_stats(call: ReadingAll) -> CollectorStatsList:
    """List who uses each collector, and how its polls of the last day went."""
    found = collector_figures.read(call.services)
    items = [collector_stats_json.stats(name, each) for name, each in found.by_collector.items()]
    items.sort(key=attrgetter("name"))
    return CollectorStatsList(since=formatting.utc(found.since_ms), items=items)


@router.get("/{name}/stats")
def show_stats(call: ReadingAll, name: Name) -> CollectorStatsBody:
    """Show who uses a collector, how its polls of the last day went, and its slowest targets."""
    found = collector_figures.read(call.services)
    collector_figures.refuse_unknown(call.services, name, found)
    slow = collector_figures.slowest(call.services, name)
    own = collector_stats_json.stats(name, found.of(name))
    return CollectorStatsBody(
        **own.model_dump(),
        since=formatting.utc(found.since_ms),
        slowest=[collector_stats_json.slow(each) for each in slow.rows],
        slowest_day=None if slow.day_ms is None else formatting.utc(slow.day_ms),
    )


@router.get("/{name}")
def show_collector(call: Reading, name: Name) -> CollectorItem:
    """Show one collector."""
    found = collector_listing.read(call.services)
    try:
        [item] = found.items(name)
    except errors.CollectorMissing as error:
        raise errors.NotFound(error.message, error.cause, error.hint) from None
    return CollectorItem(**item)
