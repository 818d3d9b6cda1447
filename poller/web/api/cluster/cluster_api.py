"""`/api/v1/workers`, `/domains`, `/sinks` and `/settings`: the processes and what they use."""

from __future__ import annotations

import os

from fastapi import Request
from pydantic import BaseModel, Field

from poller.domain.record.overview import Overview
from poller.presentation.cluster import workers_json
from poller.presentation.cluster.workers_json import DomainItem, WorkerItem
from poller.service.cluster import sink_listing
from poller.settings import setting_table
from poller.sinks import api
from poller.web.api.cluster import shared_overview
from poller.web.api.contract import resources
from poller.web.api.contract.needs import Administering, ReadingAll

workers_router = resources.router("workers")
domains_router = resources.router("domains")
sinks_router = resources.router("sinks")
settings_router = resources.router("settings")


class WorkerList(BaseModel):
    """All workers, running ones first."""

    items: list[WorkerItem]


class DomainList(BaseModel):
    """All queues of the board, by name."""

    items: list[DomainItem]


class SinkItem(BaseModel):
    """An installed sink."""

    name: str
    distribution: str
    version: str
    api_version: int
    used: bool = Field(description="Whether the settings of the web role's machine name it.")
    state: str
    deprecated: str = Field(description="Why its version of the contract will end.")


class BrokenSink(BaseModel):
    """An installed package whose sink cannot be used."""

    name: str
    distribution: str
    reason: str
    hint: str
    state: str


class SinkList(BaseModel):
    """The sinks of the web role's machine."""

    api_version: int
    api_served: list[int]
    items: list[SinkItem]
    broken: list[BrokenSink]


class SettingItem(BaseModel):
    """One setting of the web role. Secrets are masked."""

    name: str
    value: str
    origin: str = Field(description="Where the value comes from.")
    description: str


class SettingList(BaseModel):
    """Every setting, in the order of the reference."""

    items: list[SettingItem]


@workers_router.get("")
async def list_workers(call: ReadingAll, request: Request) -> WorkerList:
    """List the workers with their tags, collectors and load, and those that were lost."""
    view: Overview = await shared_overview.read(request)
    return WorkerList(items=workers_json.workers(view))


@domains_router.get("")
async def list_domains(call: ReadingAll, request: Request) -> DomainList:
    """List the queues: who serves each, what waits, need and capacity, or why none serves it."""
    view: Overview = await shared_overview.read(request)
    return DomainList(items=workers_json.domains(view))


@sinks_router.get("")
def list_sinks(call: ReadingAll) -> SinkList:
    """List the installed sinks, and those that cannot be used."""
    found = sink_listing.read(call.services.settings.sinks)
    return SinkList(
        api_version=api.API_VERSION,
        api_served=sorted(api.SERVED),
        items=[SinkItem.model_validate(each, from_attributes=True) for each in found.sinks],
        broken=[BrokenSink.model_validate(each, from_attributes=True) for each in found.broken],
    )


@settings_router.get("")
def list_settings(call: Administering) -> SettingList:
    """List every setting of the web role with its value and origin. Secrets are masked."""
    rows = setting_table.rows(call.services.settings, os.environ)
    return SettingList(
        items=[SettingItem.model_validate(row, from_attributes=True) for row in rows]
    )
