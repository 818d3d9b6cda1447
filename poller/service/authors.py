"""The authors of changes: the actor for the audit log, with the wake-up of the scheduler."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from poller import errors
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor

if TYPE_CHECKING:
    from poller.bootstrap import Services


def author(
    services: Services, actor: Actor, when_not_woken: Callable[[], None] | None = None
) -> Author:
    """Return the author of a change. `when_not_woken` is called if Redis is away.

    The change is stored all the same, and the scheduler reads it when it runs.
    """

    def wake(version: int) -> None:
        try:
            services.notify(version)
        except errors.StoreError:
            if when_not_woken is None:
                raise
            when_not_woken()

    return Author(actor, wake)
