"""`/api/v1/filters`: saved filters of the list of devices."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from poller.domain.fleet.device_sort import DeviceSort
from poller.domain.fleet.saved_filter import LONGEST_NAME, LONGEST_WHERE, SavedFilter
from poller.service.fleet import filter_actions
from poller.web.api.contract import problems, resources
from poller.web.api.contract.needs import ReadingAll
from poller.web.api.contract.paging import Page

router = resources.router("filters")

FilterName = Annotated[str, Path(max_length=LONGEST_NAME, description="Its name.")]


class FilterItem(BaseModel):
    """One saved filter."""

    name: str
    owner: str
    where: str
    sort: DeviceSort
    shared: bool = Field(description="Whether others see it.")


class FilterBody(BaseModel):
    """A filter to be saved."""

    model_config = ConfigDict(extra="forbid")

    where: Annotated[
        str, Field(max_length=LONGEST_WHERE, pattern=r"^[^\x00]*$", description="The filter.")
    ] = ""
    sort: DeviceSort = DeviceSort.NAME
    shared: Annotated[bool, Field(description="Others see it; needs the scope operate.")] = False


@router.get("")
def list_filters(call: ReadingAll) -> Page[FilterItem]:
    """List the own filters and those that others share, by name. There is one page."""
    found = filter_actions.listing(call.services, call.actor)
    return Page(items=[_item(each) for each in found], next=None)


@router.put("/{name}", responses=problems.CHANGING)
def save_filter(call: ReadingAll, name: FilterName, body: FilterBody) -> FilterItem:
    """Save a filter under a name; an own one of that name is replaced."""
    saved = filter_actions.save(
        call.services, call.actor, name, body.where, body.sort, shared=body.shared
    )
    return _item(saved)


@router.delete("/{name}", status_code=204, responses=problems.CHANGING)
def remove_filter(call: ReadingAll, name: FilterName) -> None:
    """Remove an own filter."""
    filter_actions.remove(call.services, call.actor, name)


def _item(saved: SavedFilter) -> FilterItem:
    return FilterItem(
        name=saved.name,
        owner=saved.owner,
        where=saved.where,
        sort=saved.sort,
        shared=saved.is_shared,
    )
