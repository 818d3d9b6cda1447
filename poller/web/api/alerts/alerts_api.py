"""`/api/v1/alerts`: what is wrong now, and what was; acknowledge it, or silence it."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.rule import Severity
from poller.domain.record import instant_text
from poller.presentation.alerts import alert_sentences
from poller.service.alerts import alert_actions, maintenance_actions
from poller.service.alerts.alert_actions import AlertQuery
from poller.service.alerts.shown_alerts import ShownAlert
from poller.web.api.alerts.maintenances_api import MaintenanceBody
from poller.web.api.contract import paging, problems, resources, target_ids
from poller.web.api.contract.needs import Operating, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.contract.target_ids import LARGEST_ID, WhereQuery
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import Since

router = resources.router("alerts")

AlertId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The id of the alert.")]
States = Annotated[
    list[AlertState] | None,
    Query(alias="state", max_length=10, description="Repeat it for more; else those open."),
]
Severities = Annotated[
    list[Severity] | None, Query(alias="severity", max_length=10, description="Repeat it for more.")
]
Rules = Annotated[
    list[Annotated[str, Field(max_length=200)]] | None,
    Query(alias="rule", max_length=50, description="Repeat it for more."),
]
Suppressed = Annotated[
    bool | None, Query(description="Only those that something covers; false: only the others.")
]


class AlertBody(BaseModel):
    """One alert."""

    id: int
    rule: str
    severity: Severity
    state: AlertState
    about: str = Field(description="What it is about, in one text.")
    device: str
    target: str
    site: str
    series: str
    text: str
    value: float | None
    labels: dict[str, str]
    since: datetime | None = Field(description="When the condition began.")
    since_seconds: int
    fired: datetime | None
    resolved: datetime | None
    lasted_seconds: int
    suppressed_by: str = Field(
        description="Empty, or `site:NAME`, `alert:ID`, `maintenance:ID` or `paused`."
    )
    acknowledged_by: str
    acknowledged_note: str
    acknowledged_until: datetime | None
    flapping: bool
    url: str = Field(description="Its page; empty if web_url is not set.")


class ChangeBody(BaseModel):
    """One row of the history of an alert."""

    at: datetime | None
    kind: str
    text: str
    actor: str = Field(description="Empty: the platform itself.")


class TellingBody(BaseModel):
    """Whom the platform told of an alert, and what became of the delivery."""

    at: datetime | None
    route: str
    kind: str
    receiver: str
    state: str
    attempts: int
    answer: str


class AlertDetailsBody(AlertBody):
    """One alert with its history."""

    changes: list[ChangeBody]
    tellings: list[TellingBody]


class AlertNumbersBody(BaseModel):
    """The open alerts in numbers."""

    firing: int = Field(description="Not suppressed.")
    pending: int = Field(description="Not suppressed.")
    suppressed: int
    by_severity: dict[str, int] = Field(description="Of the firing ones.")
    text: str = Field(description="The same in words; empty for none.")


class AcknowledgeRequest(BaseModel):
    """An acknowledgement: a person works on the alert."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, Field(max_length=1_000)] = ""
    until: Annotated[
        str, Field(max_length=40, description="RFC 3339, or a duration from now such as 4h.")
    ] = "8h"


class SilenceRequest(BaseModel):
    """A silence of one alert."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(max_length=1_000)]
    until: Annotated[
        str, Field(max_length=40, description="RFC 3339, or a duration from now such as 4h.")
    ]


@router.get("")
def list_alerts(
    call: Reading,
    request: Request,
    response: Response,
    states: States = None,
    severities: Severities = None,
    rules: Rules = None,
    suppressed: Suppressed = None,
    where: WhereQuery = "",
    since: Since = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[AlertBody]:
    """List alerts, the newest first: those that are open, unless states are given."""
    key = paging.decode(cursor, int)
    query = AlertQuery(
        states=states or (),
        severities=severities or (),
        rules=rules or (),
        suppressed=suppressed,
        wanted=target_ids.parsed(where),
        since_ms=record_filters.since_ms(since),
    )
    before_id = key[0] if key else None
    found = alert_actions.page(call.services, call.actor, query, limit, before_id)
    following = paging.encode(None if found.next_id is None else [found.next_id])
    paging.link_next(request, response, following)
    return Page(items=[_body(each) for each in found.items], next=following)


@router.get("/numbers")
def count_alerts(call: Reading) -> AlertNumbersBody:
    """Count the open alerts."""
    found = alert_actions.numbers(call.services, call.actor)
    return AlertNumbersBody(
        firing=found.firing,
        pending=found.pending,
        suppressed=found.suppressed,
        by_severity=dict(found.by_severity),
        text=alert_sentences.in_words(found),
    )


@router.get("/{alert_id}")
def show_alert(call: Reading, alert_id: AlertId) -> AlertDetailsBody:
    """Show one alert, what happened to it, and who was told."""
    found = alert_actions.show(call.services, call.actor, alert_id)
    return AlertDetailsBody(
        **_body(found.alert).model_dump(),
        changes=[ChangeBody(**asdict(each)) for each in found.changes],
        tellings=[TellingBody(**asdict(each)) for each in found.tellings],
    )


@router.post("/{alert_id}/acknowledge", responses=problems.CHANGING)
def acknowledge_alert(call: Operating, alert_id: AlertId, body: AcknowledgeRequest) -> AlertBody:
    """Say that a person works on an open alert: nobody else is called until the end."""
    until_ms = instant_text.ahead_ms("until", body.until, _now_ms())
    done = alert_actions.acknowledge(call.services, call.actor, alert_id, body.note, until_ms)
    return _body(done)


@router.post("/{alert_id}/unacknowledge", responses=problems.CHANGING)
def unacknowledge_alert(call: Operating, alert_id: AlertId) -> AlertBody:
    """Take the acknowledgement of an open alert back."""
    return _body(alert_actions.unacknowledge(call.services, call.actor, alert_id))


@router.post("/{alert_id}/silence", status_code=201, responses=problems.CHANGING)
def silence_alert(call: Operating, alert_id: AlertId, body: SilenceRequest) -> MaintenanceBody:
    """Tell nobody of an open alert until an end, also if it goes and comes back."""
    now_ms = _now_ms()
    until_ms = instant_text.ahead_ms("until", body.until, now_ms)
    made = alert_actions.silence(call.services, call.actor, alert_id, until_ms, body.reason)
    return MaintenanceBody(**asdict(maintenance_actions.shown(made, now_ms)))


def _body(shown: ShownAlert) -> AlertBody:
    return AlertBody(**asdict(shown))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
