"""The newest poll of every target that a filter selects, in pages, so that memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.inventory import inventory_feed
from poller.db.record import stored_readings
from poller.db.record.stored_readings import PackedPoll
from poller.domain.access.actor import Actor
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.inventory.target_filter import TargetFilter
from poller.service import site_limit
from poller.service.selection import target_page

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Targets of one page: their shapes and values are in memory together.
PAGE = 200


@dataclass(frozen=True, slots=True)
class LatestPoll:
    """An enabled target and its newest readings; None if it was never read."""

    target: PollTarget
    stored: PackedPoll | None


def pages(services: Services, actor: Actor, wanted: TargetFilter) -> Iterator[list[LatestPoll]]:
    """Yield the enabled targets that match and that the actor may see, in the order of keys.

    Raises NotFound for a site or collector that does not exist, NotAllowed, StoreError.
    """
    wanted = site_limit.limited(actor, wanted)
    after = None
    while True:
        page = target_page.target_page(services, wanted, after, PAGE)
        ids = [target.id for target in page.targets if target.enabled]
        if ids:
            yield _latest(services, ids)
        after = page.next
        if after is None:
            return


def _latest(services: Services, ids: Sequence[int]) -> list[LatestPoll]:
    targets = inventory_feed.poll_targets(services.engine, ids)
    stored = stored_readings.latest_packed(services.engine, ids)
    return [LatestPoll(targets[each], stored.get(each)) for each in ids if each in targets]
