"""Receivers, routes and deliveries, for the command line and the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.alerts.receivers import registry
from poller.db import database_clock
from poller.db.alerts import delivery_listing
from poller.db.alerts.delivery_listing import DeliveryFilter, ReceiverCounts
from poller.domain.alerts.telling import route_form
from poller.domain.alerts.telling.alert_route import Route
from poller.domain.alerts.telling.delivery import Delivery
from poller.domain.inventory import did_you_mean
from poller.presentation.alerts import notifications_json
from poller.presentation.alerts.notifications_json import ReceiverItem, RouteItem
from poller.presentation.record import instants

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.settings import Settings


@dataclass(frozen=True, slots=True)
class NotificationListing:
    """The receivers and the routes of this machine's settings."""

    receivers: Sequence[ReceiverItem]
    routes: Sequence[RouteItem]


def listing(services: Services) -> NotificationListing:
    """Return all receivers and routes. Raises StoreError."""
    settings = services.settings
    found = routes(settings)
    counts = delivery_listing.counts(services.engine)
    now_ms = database_clock.now_ms(services.engine)
    receivers = [
        _receiver(settings, name, found, counts.get(name, ReceiverCounts()))
        for name in settings.receiver
    ]
    return NotificationListing(
        receivers, [notifications_json.route_item(each, now_ms) for each in found]
    )


def routes(settings: Settings) -> list[Route]:
    """The routes of the settings."""
    return route_form.read(settings.route, settings.receiver)


def route(settings: Settings, name: str) -> Route:
    """Return one route. Raises NotFound with the nearest name."""
    found = {each.name: each for each in routes(settings)}
    did_you_mean.refuse_unknown("route", name, found, "poller notify list")
    return found[name]


def deliveries(services: Services, wanted: DeliveryFilter, limit: int) -> list[Delivery]:
    """Return deliveries, the newest first. Raises StoreError."""
    return delivery_listing.page(services.engine, wanted, limit)


def delivery(services: Services, delivery_id: int) -> Delivery:
    """Return one delivery. Raises NotFound, StoreError."""
    return delivery_listing.one(services.engine, delivery_id)


def _receiver(
    settings: Settings, name: str, found: Sequence[Route], counts: ReceiverCounts
) -> ReceiverItem:
    return ReceiverItem(
        name=name,
        kind=registry.kind_of(name, settings.receiver),
        problem=_problem(settings, name),
        routes=[each.name for each in found if name in each.all_receivers],
        waiting=counts.waiting,
        oldest=instants.of_ms(counts.oldest_waiting_ms),
        dead=counts.dead,
        last_state=counts.last_state,
        last_at=instants.of_ms(counts.last_ms),
        last_answer=counts.last_answer,
    )


def _problem(settings: Settings, name: str) -> str:
    """Why a receiver cannot be made on this machine, as a scheduler that starts would find it."""
    try:
        registry.close(registry.make(name, settings.receiver))
    except errors.InvalidSetting as error:
        hint = f" ({error.hint})" if error.hint else ""
        return f"{error}{hint}"
    return ""
