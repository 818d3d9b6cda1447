"""`/api/v1/notifications`: who is told of alerts, what was sent, and a test."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from poller.db.alerts.delivery_listing import DeliveryFilter
from poller.domain.alerts.telling.delivery import DeliveryState
from poller.presentation.alerts import notifications_json
from poller.presentation.alerts.notifications_json import (
    DeliveryDetails,
    DeliveryItem,
    ReceiverItem,
    Retried,
    RouteItem,
    RouteTest,
)
from poller.service.alerts import notify_actions, shown_notifications
from poller.web.api.contract import paging, problems, resources
from poller.web.api.contract.needs import OperatingAll, ReadingAll
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.contract.target_ids import LARGEST_ID

router = resources.router("notifications")

_MOST_IDS = 500
Name = Annotated[str, Query(max_length=100)]
DeliveryId = Annotated[int, Path(ge=1, le=LARGEST_ID, description="The id of the delivery.")]
AlertQuery = Annotated[
    int | None, Query(ge=1, le=LARGEST_ID, description="Only those that tell of this alert.")
]
OneId = Annotated[int, Field(ge=1, le=LARGEST_ID)]


class NotificationList(BaseModel):
    """The receivers and the routes of the settings."""

    receivers: list[ReceiverItem]
    routes: list[RouteItem]


class RetryRequest(BaseModel):
    """Dead deliveries to try again: some ids, or all of a receiver."""

    model_config = ConfigDict(extra="forbid")

    ids: list[OneId] = Field(default_factory=list, max_length=_MOST_IDS)
    receiver: str = Field("", max_length=100, pattern=r"^[^\x00]*$")


@router.get("")
def list_notifications(call: ReadingAll) -> NotificationList:
    """List receivers with what waits and failed, and routes with what they take."""
    found = shown_notifications.listing(call.services)
    return NotificationList(receivers=list(found.receivers), routes=list(found.routes))


@router.post("/routes/{name}/test", responses=problems.CHANGING)
def test_route(
    call: OperatingAll, name: Annotated[str, Path(max_length=100, description="A route.")]
) -> RouteTest:
    """Send a test to every receiver of a route from the web role's machine, and tell what each
    answered. A receiver that does not take it is a result with `ok` false.
    """
    return notify_actions.send_test(call.services, call.actor, name)


@router.get("/deliveries")
def list_deliveries(
    call: ReadingAll,
    request: Request,
    response: Response,
    state: Annotated[DeliveryState | None, Query(description="Only in this state.")] = None,
    route: Name = "",
    receiver: Name = "",
    alert: AlertQuery = None,
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[DeliveryItem]:
    """List what was sent and what waits, the newest first."""
    key = paging.decode(cursor, int)
    wanted = DeliveryFilter(state, route, receiver, alert, key[0] if key else None)
    rows = shown_notifications.deliveries(call.services, wanted, limit + 1)
    following = paging.encode([rows[limit - 1].id] if len(rows) > limit else None)
    paging.link_next(request, response, following)
    return Page(items=notifications_json.delivery_items(rows[:limit]), next=following)


@router.get("/deliveries/{delivery_id}")
def show_delivery(call: ReadingAll, delivery_id: DeliveryId) -> DeliveryDetails:
    """Show one delivery with its text."""
    found = shown_notifications.delivery(call.services, delivery_id)
    return notifications_json.delivery_details(found)


@router.post("/deliveries/retry", responses=problems.CHANGING)
def retry_deliveries(call: OperatingAll, body: RetryRequest) -> Retried:
    """Try dead deliveries again."""
    return notify_actions.retry(call.services, call.actor, body.ids, body.receiver)
