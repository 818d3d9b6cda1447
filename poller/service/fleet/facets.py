"""The facets of the list of devices: states, codes, sites and collectors with their numbers.

All numbers are kept or cached by others: a list of 100,000 devices is never counted for a page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.inventory import filter_conditions
from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import SiteSummary
from poller.service.fleet import fleet_picture
from poller.state.board.unwell_targets import UnwellTargets

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class Facets:
    """Numbers of targets by state and code, of devices by site; collectors that are in use."""

    states: Mapping[str, int]
    codes: Mapping[str, int]
    sites: Sequence[SiteSummary]
    collectors: Sequence[str]


def of_fleet(services: Services) -> Facets:
    """Return the facets of the whole fleet. Raises StoreError."""
    states: Counter[str] = Counter()
    for condition, number in UnwellTargets(services.board).counts().items():
        states[condition.state.value] += number
        if condition.is_open:
            states["open"] += number
        if condition.is_parked:
            states["parked"] += number
    picture = fleet_picture.picture(services)
    return Facets(
        states=states,
        codes=failing_causes.by_code(picture.causes),
        sites=picture.sites,
        collectors=sorted(filter_conditions.collectors_in_use(services.engine)),
    )
