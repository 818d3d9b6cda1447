"""Is it a router that lets us in, and which? For `poller discover`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from poller.collectors.api import KeepsSessions, Poll, Suggestion
from poller.collectors.routeros.api_client import Router
from poller.collectors.routeros.families.family import Row


async def discover(keeper: KeepsSessions[Router], poll: Poll) -> AsyncIterator[Suggestion]:
    """The target that a router at this address should have. Raises DeviceErrors."""
    [resource, *_] = [*await poll.session(keeper, _ask), {}]
    version, board = (
        resource.get("version", "of an unknown version"),
        resource.get("board-name", "unknown hardware"),
    )
    yield Suggestion(
        poll.options.model_dump(mode="json", exclude_unset=True), f"RouterOS {version} on {board}"
    )


async def _ask(router: Router) -> Sequence[Row]:
    router.begin()
    return await router.print("/system/resource", "version,board-name")
