"""Acts on all devices that a filter selects, for the pages: planned, confirmed, then done.

Each act is that of the API and of the command line; nothing is decided here a second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit
from poller.service.fleet import act_undo, board_acts, edit_acts
from poller.service.fleet.fleet_plan import Action, FleetPlan, actor_of
from poller.service.selection import match_count
from poller.service.selection.match_count import Count

if TYPE_CHECKING:
    from poller.bootstrap import Services


def plan(
    services: Services,
    author: Author,
    action: Action,
    wanted: TargetFilter,
    fields: Mapping[str, str],
) -> FleetPlan:
    """Plan an act. `fields` has its values as they were typed.

    Raises NotAllowed, NotFound if nothing matches, InvalidInput, which names the field, StoreError.
    """
    actor_of(author).require(action.scope)
    if action in board_acts.PLANS:
        return board_acts.PLANS[action](services, actor_of(author), wanted, fields)
    return edit_acts.plan(services, author, action, wanted, fields)


def plan_undo(services: Services, author: Author, name: str) -> FleetPlan:
    """Plan the way back of an act. Raises NotFound for one that is over or unknown, NotAllowed."""
    return act_undo.plan(services, author, name)


def count(services: Services, author: Author, wanted: TargetFilter) -> Count:
    """Count the devices that match; a lower bound unless it is exact."""
    return match_count.count_devices(services, site_limit.limited(author.actor, wanted))
