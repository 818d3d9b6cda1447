"""The list of alerts as a person reads it: what fires first, then the newest of each state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller.db.alerts import alert_listing
from poller.domain.access.actor import Actor
from poller.domain.alerts.alert import AlertState
from poller.service.alerts import alert_actions
from poller.service.alerts.alert_actions import AlertQuery
from poller.service.alerts.shown_alerts import ShownAlert

if TYPE_CHECKING:
    from poller.bootstrap import Services

_ORDER = (AlertState.FIRING, AlertState.PENDING, AlertState.RESOLVED)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page ends: the state and the id of its last alert."""

    state: AlertState
    id: int


@dataclass(frozen=True, slots=True)
class StatePage:
    """A page of alerts. `last` is None on the last page."""

    items: Sequence[ShownAlert]
    last: Place | None


def page(
    services: Services, actor: Actor, query: AlertQuery, limit: int, after: Place | None = None
) -> StatePage:
    """Return the next alerts, read state by state, as the index of the table has them.

    Raises UnknownName for a site that does not exist, NotAllowed, StoreError.
    """
    found: list[ShownAlert] = []
    for state in _states(query, after):
        before_id = after.id if after is not None and after.state is state else None
        of_state = replace(query, states=(state,))
        missing = limit + 1 - len(found)
        found += alert_actions.page(services, actor, of_state, missing, before_id).items
        if len(found) > limit:
            last = found[limit - 1]
            return StatePage(found[:limit], Place(AlertState(last.state), last.id))
    return StatePage(found, None)


def _states(query: AlertQuery, after: Place | None) -> Sequence[AlertState]:
    """The states that are still to be read."""
    wanted = query.states or alert_listing.OPEN
    begun = _ORDER.index(after.state) if after is not None else 0
    return [state for state in _ORDER[begun:] if state in wanted]
