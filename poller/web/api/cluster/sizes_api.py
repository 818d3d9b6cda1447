"""`/api/v1/sizes`: what a planned fleet takes, and the room that history takes."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from poller.domain.inventory import duration
from poller.presentation.history import needs_json, size_json
from poller.presentation.history.needs_json import NeedItem, PlannedFleet
from poller.presentation.history.size_json import PartItem, WritingFleet
from poller.service.history.fleet_size import SizeQuestion, fleet_needs
from poller.service.history.history_size import history_size
from poller.web.api.contract import resources
from poller.web.api.contract.needs import ReadingAll

router = resources.router("sizes")


class FleetSize(BaseModel):
    """The needs of a planned fleet."""

    fleet: PlannedFleet
    items: list[NeedItem]


class HistorySizes(BaseModel):
    """The room that history takes, from what this fleet writes."""

    devices: int
    fleet: WritingFleet
    items: list[PartItem]


@router.get("/fleet")
def size_fleet(
    call: ReadingAll,
    devices: Annotated[int, Query(ge=1, le=100_000_000, description="Devices.")],
    interfaces: Annotated[int, Query(ge=0, le=100_000, description="Of each device.")] = 48,
    interval: Annotated[str, Query(max_length=20, description="Interval of polls.")] = "60s",
    objects: Annotated[
        float | None, Query(ge=0, le=10_000, description="Samples of an interface.")
    ] = None,
    history_days: Annotated[
        float | None, Query(ge=0, le=3650, description="Days that every reading is kept.")
    ] = None,
    workers: Annotated[int, Query(ge=0, le=10_000, description="0: as many as needed.")] = 0,
    sinks: Annotated[
        int | None, Query(ge=0, le=100, description="Sinks besides the one of SQL.")
    ] = None,
) -> FleetSize:
    """Compute cores, memory, disk and bandwidth of a fleet, from measured figures."""
    question = SizeQuestion(
        devices=devices,
        interfaces=interfaces,
        interval_ms=duration.interval_ms(interval),
        objects=objects,
        history_days=history_days,
        workers=workers,
        sinks=sinks,
    )
    plan, needs = fleet_needs(call.services.settings, question)
    return FleetSize(fleet=needs_json.fleet(plan), items=needs_json.items(needs))


@router.get("/history")
def size_history(
    call: ReadingAll,
    devices: Annotated[
        int | None, Query(ge=1, le=100_000_000, description="Devices like those of this fleet.")
    ] = None,
) -> HistorySizes:
    """Show the room that history takes with the set retention, from what the fleet writes."""
    found = history_size(call.services, devices)
    return HistorySizes(
        devices=found.devices,
        fleet=size_json.fleet(found.fleet),
        items=size_json.items(found.parts, found.total_bytes),
    )
