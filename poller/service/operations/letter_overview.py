"""What a page of dead letters shows: all of them as a number, their groups, or one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import event_publisher
from poller.db.record import dead_letter_rows, letter_groups
from poller.domain.access.actor import Actor
from poller.domain.failures.dead_letter import GroupBy
from poller.service.operations import letter_actions, shown_letters
from poller.service.operations.letter_actions import LetterPage, LetterQuery
from poller.service.operations.shown_letters import ShownGroup

if TYPE_CHECKING:
    from poller.bootstrap import Services


@dataclass(frozen=True, slots=True)
class LetterOverview:
    """The letters of a query. `every` is all of them as one group; None if there is none."""

    every: ShownGroup | None = None
    groups: Sequence[ShownGroup] = ()
    has_more_groups: bool = False
    letters: LetterPage = field(default_factory=lambda: LetterPage((), None))


def in_groups(
    services: Services, actor: Actor, query: LetterQuery, by: GroupBy, limit: int
) -> LetterOverview:
    """Return the largest groups. Raises as `letter_actions.page` does."""
    wanted = letter_actions.conditions(services, actor, query)
    now_ms = event_publisher.now_ms()
    since_ms = now_ms - shown_letters.ARRIVED_MS
    every = letter_groups.total(services.engine, wanted, since_ms)
    found = letter_groups.groups(services.engine, wanted, by, since_ms, limit + 1)
    shown = [shown_letters.group(each, now_ms) for each in found[:limit]]
    return LetterOverview(
        every=shown_letters.group(every, now_ms) if every else None,
        groups=shown,
        has_more_groups=len(found) > limit,
    )


def one_by_one(
    services: Services,
    actor: Actor,
    query: LetterQuery,
    limit: int,
    after: tuple[int, int] | None,
) -> LetterOverview:
    """Return a page of letters, the oldest first. Raises as `letter_actions.page` does."""
    wanted = letter_actions.conditions(services, actor, query)
    now_ms = event_publisher.now_ms()
    every = letter_groups.total(services.engine, wanted, now_ms - shown_letters.ARRIVED_MS)
    found = dead_letter_rows.listing(services.engine, wanted, limit + 1, after)
    return LetterOverview(
        every=shown_letters.group(every, now_ms) if every else None,
        letters=letter_actions.page_of(found, limit, now_ms),
    )
