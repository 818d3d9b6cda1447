"""`/api/v1/parents`: through which device each one is reached, and what neighbours suggest."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from poller.service.alerts import parent_actions
from poller.service.alerts.parent_actions import ShownSuggestion, SuggestionState
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.needs import Editing, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page

router = resources.router("parents")

_NAME = Field(max_length=200)
Cores = Annotated[
    list[Annotated[str, _NAME]] | None,
    Query(alias="core", max_length=50, description="Devices that all others are reached through."),
]


class ParentBody(BaseModel):
    """A device and its parent."""

    device: str
    parent: str
    source: str = Field(description="hand, import or neighbours.")


class SuggestionBody(BaseModel):
    """A suggested parent, and why."""

    device: str
    parent: str
    state: SuggestionState
    stored: str = Field(description="The present parent; empty: none.")
    link: str
    reason: str
    others: list[str] = Field(description="Parents that would do as well: choose one.")


class SuggestionList(BaseModel):
    """Suggested parents, and what they stand on."""

    items: list[SuggestionBody]
    devices_read: int = Field(description="Devices whose neighbours are stored.")
    unknown_neighbours: int = Field(description="Neighbours that are no device here.")


class AcceptRequest(BaseModel):
    """Which suggestions to store."""

    model_config = ConfigDict(extra="forbid")

    devices: list[Annotated[str, _NAME]] = Field(
        default_factory=list,
        max_length=100_000,
        description="Empty: all devices that have no parent.",
    )
    cores: list[Annotated[str, _NAME]] = Field(default_factory=list, max_length=50)


class AcceptedList(BaseModel):
    """The suggestions that were stored."""

    items: list[SuggestionBody]


@router.get("")
def list_parents(
    call: Reading, limit: Limit = paging.DEFAULT_LIMIT, cursor: Cursor = ""
) -> Page[ParentBody]:
    """List the devices that have a parent, by name. `PATCH /api/v1/devices/NAME` changes one."""
    found = parent_actions.listing(call.services, call.actor)
    found.sort(key=lambda each: each.device)
    names = [each.device for each in found]
    start, end, following = paging.after_name(names, limit, cursor)
    items = [
        ParentBody(device=each.device, parent=each.parent, source=each.source)
        for each in found[start:end]
    ]
    return Page(items=items, next=following)


@router.get("/suggestions")
def suggest_parents(call: Reading, cores: Cores = None) -> SuggestionList:
    """Suggest parents from the LLDP and CDP neighbours of the last polls; nothing is changed."""
    found = parent_actions.suggestions(call.services, call.actor, cores or ())
    return SuggestionList(
        items=[_body(each) for each in found.items],
        devices_read=found.devices_read,
        unknown_neighbours=found.unknown_neighbours,
    )


@router.post("/accept", responses=problems.CHANGING)
def accept_parents(call: Editing, body: AcceptRequest) -> AcceptedList:
    """Store suggested parents, all or none."""
    done = parent_actions.accept(call.services, call.author, call.actor, body.devices, body.cores)
    return AcceptedList(items=[_body(each) for each in done])


def _body(shown: ShownSuggestion) -> SuggestionBody:
    return SuggestionBody(**asdict(shown))
