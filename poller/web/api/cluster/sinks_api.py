"""`/api/v1/sinks`: where readings go, the state of every sink, and a test of one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation.cluster.sinks_json import BrokenSink, InstalledSink, SinkItem, SinkTest
from poller.service.cluster import marked_sample, sink_listing
from poller.sinks import api
from poller.web.api.cluster import shared_overview
from poller.web.api.contract import problems, resources
from poller.web.api.contract.needs import OperatingAll, ReadingAll

router = resources.router("sinks")

SinkName = Annotated[str, Path(max_length=100, description="Its name in the settings.")]


class SinkList(BaseModel):
    """The sinks of the cluster, and the kinds that are installed on the web role's machine."""

    api_version: int
    api_served: list[int]
    items: list[SinkItem]
    installed: list[InstalledSink]
    broken: list[BrokenSink]


class SinkTestBody(SinkTest):
    """The answer of the store, and what went wrong beside the test."""

    note: str = Field("", description="What went wrong beside the test.")


@router.get("")
async def list_sinks(call: ReadingAll, request: Request) -> SinkList:
    """List the sinks with state, rate, lag, spool, last error and losses; then the kinds."""
    view = await _overview(request)
    found = await run_in_threadpool(sink_listing.read, call.services.settings, view)
    return SinkList(
        api_version=api.API_VERSION,
        api_served=sorted(api.SERVED),
        items=list(found.sinks),
        installed=list(found.installed),
        broken=[BrokenSink(**asdict(each)) for each in found.broken],
    )


@router.get("/{name}")
async def show_sink(call: ReadingAll, request: Request, name: SinkName) -> SinkItem:
    """Show one sink."""
    view = await _overview(request)
    found = await run_in_threadpool(sink_listing.read, call.services.settings, view)
    return found.sink(name)


@router.post("/{name}/test", responses=problems.CHANGING)
def test_sink(call: OperatingAll, name: SinkName) -> SinkTestBody:
    """Send one marked sample (`poller_sink_test`) from the web role's machine, and tell what the
    store answered. A store that does not take it is a result with `ok` false.
    """
    result, note = marked_sample.send(call.services, call.actor, name)
    return SinkTestBody(**result.model_dump(), note=note)


async def _overview(request: Request) -> Overview | None:
    """The newest overview; None while Redis cannot be read, so that settings are still shown."""
    try:
        return await shared_overview.read(request)
    except errors.StoreUnavailable:
        return None
