"""`/api/v1/workers`, `/domains` and `/settings`: the processes and what they use."""

from __future__ import annotations

import os

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from poller.domain.record.overview import Overview
from poller.presentation.cluster import workers_json
from poller.presentation.cluster.workers_json import DomainItem, WorkerItem
from poller.settings import setting_table
from poller.web.api.cluster import shared_overview
from poller.web.api.contract import resources
from poller.web.api.contract.needs import Administering, ReadingAll
from poller.web.backend_queries import BackendQueries

workers_router = resources.router("workers")
domains_router = resources.router("domains")
settings_router = resources.router("settings")


class WorkerList(BaseModel):
    """All workers, running ones first."""

    items: list[WorkerItem]


class DomainList(BaseModel):
    """All queues of the board, by name."""

    items: list[DomainItem]


class SettingItem(BaseModel):
    """One setting of the web role. Secrets are masked."""

    name: str
    value: str
    origin: str = Field(description="Where the value comes from.")
    description: str
    default: str = Field(description="The value without any source.")


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
    backend: BackendQueries = request.app.state.backend
    times = await run_in_threadpool(backend.queue_times, view.as_of_ms)
    return DomainList(items=workers_json.domains(view, times))


@settings_router.get("")
def list_settings(call: Administering) -> SettingList:
    """List every setting of the web role with its value and origin. Secrets are masked."""
    rows = setting_table.rows(call.services.settings, os.environ)
    return SettingList(
        items=[SettingItem.model_validate(row, from_attributes=True) for row in rows]
    )
