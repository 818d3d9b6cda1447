"""`/api/v1/maintenances`: until when nobody is told of what matches; monitoring goes on."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller import errors
from poller.domain.inventory import duration, target_filter
from poller.domain.record import instant_text
from poller.service.alerts import maintenance_actions
from poller.service.alerts.maintenance_actions import MaintenanceDraft, ShownMaintenance
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.bulk_bodies import LONGEST_WHERE
from poller.web.api.contract.needs import Operating, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.contract.target_ids import LARGEST_ID

router = resources.router("maintenances")

MaintenanceId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="Its id.")]
Instant = Annotated[
    str, Field(max_length=40, description="RFC 3339, or a duration from now such as 2h.")
]


class MaintenanceBody(BaseModel):
    """One maintenance."""

    id: int
    state: Literal["active", "waiting", "over"]
    where: str = Field(description="The filter of its devices; empty: it is about a rule or alert.")
    rule: str = Field(description="Empty: every rule.")
    alert: str = Field(description="The identity of the alert that it silences; empty: none alone.")
    reason: str
    start: datetime | None
    end: datetime | None
    cron: str
    time_zone: str
    length_seconds: int = Field(description="Of one recurrence; 0: it does not recur.")
    active_until: datetime | None
    next_start: datetime | None
    created_by: str
    created: datetime | None


class NewMaintenance(BaseModel):
    """A maintenance to be added. It needs an end, a reason, and a filter or a rule."""

    model_config = ConfigDict(extra="forbid")

    where: Annotated[
        str,
        Field(
            max_length=LONGEST_WHERE,
            pattern=r"^[^\x00]*$",
            description=f"A filter, such as {target_filter.EXAMPLE}.",
        ),
    ] = ""
    rule: Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")] = ""
    reason: Annotated[str, Field(max_length=1_000)]
    start: Annotated[Instant, Field(description="Empty: now.")] = ""
    end: Instant
    cron: Annotated[
        str, Field(max_length=100, description="It recurs: minute, hour, day, month, weekday.")
    ] = ""
    time_zone: Annotated[str, Field(max_length=100)] = "UTC"
    length: Annotated[str, Field(max_length=40, description="Of one recurrence, such as 2h.")] = ""

    def draft(self, now_ms: int) -> MaintenanceDraft:
        """The instants in milliseconds. Raises InvalidInput, which names the field."""
        return MaintenanceDraft(
            where=self.where,
            rule=self.rule,
            reason=self.reason,
            starts_ms=instant_text.ahead_ms("start", self.start, now_ms) if self.start else None,
            ends_ms=instant_text.ahead_ms("end", self.end, now_ms),
            cron=self.cron,
            time_zone=self.time_zone,
            length_ms=_length_ms(self.length),
        )


@router.get("")
def list_maintenances(
    call: Reading,
    request: Request,
    response: Response,
    over: Annotated[bool, Query(description="Also those that are over.")] = False,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[MaintenanceBody]:
    """List maintenances and silences, the newest first.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    key = paging.decode(cursor, int)
    before_id = key[0] if key else None
    found = maintenance_actions.page(call.services, call.actor, over, limit, before_id)
    following = paging.encode(None if found.next_id is None else [found.next_id])
    paging.link_next(request, response, following)
    return Page(items=[_body(each) for each in found.items], next=following)


@router.post("", status_code=201, responses=problems.CHANGING)
def add_maintenance(call: Operating, body: NewMaintenance) -> MaintenanceBody:
    """Tell nobody of alerts that match, until an end. Ends of alerts are told all the same."""
    draft = body.draft(time.time_ns() // 1_000_000)
    return _body(maintenance_actions.add(call.services, call.actor, draft))


@router.get("/{maintenance_id}")
def show_maintenance(call: Reading, maintenance_id: MaintenanceId) -> MaintenanceBody:
    """Show one maintenance."""
    return _body(maintenance_actions.show(call.services, call.actor, maintenance_id))


@router.post("/{maintenance_id}/end", responses=problems.CHANGING)
def end_maintenance(call: Operating, maintenance_id: MaintenanceId) -> MaintenanceBody:
    """End a maintenance or a silence now."""
    return _body(maintenance_actions.end(call.services, call.actor, maintenance_id))


def _body(shown: ShownMaintenance) -> MaintenanceBody:
    return MaintenanceBody(**asdict(shown))


def _length_ms(text: str) -> int:
    if not text:
        return 0
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        message = f"length: {error.message}"
        raise errors.InvalidInput(message, hint=error.hint, field="length") from None
