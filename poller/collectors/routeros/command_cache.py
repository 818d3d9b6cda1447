"""The commands of one poll on one connection: each sentence is sent once, whoever needs its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from poller.collectors.routeros.api_client import Router
from poller.collectors.routeros.families.family import Rows

#: A context that ends with the time of the poll, less what so many rows take afterwards; and then says this.
Within = Callable[[str, int], AbstractAsyncContextManager[None]]


class Conversation:
    def __init__(self, router: Router, within: Within) -> None:
        self._router = router
        self._within = within
        self._said: dict[object, Rows] = {}
        self._menus: dict[str, Rows] = {}
        self._rows = 0  # that were read

    async def say(
        self, command: str, proplist: Sequence[str] = (), queries: Sequence[str] = (), **words: str
    ) -> Rows:
        """The answer. Raises what the client raises; a DeviceTimeout at the end of the poll."""
        sentence = (command, frozenset(proplist), tuple(queries), tuple(words.items()))
        if sentence not in self._said:
            attributes = {".proplist": ",".join(proplist), **words} if proplist else words
            async with self._within(f"no complete answer to {command}", self._rows):
                self._said[sentence] = await self._router.call(command, *queries, **attributes)
            self._rows += len(self._said[sentence])
            if proplist and not queries:
                self._menus[command] = self._said[sentence]
        return self._said[sentence]

    def menu(self, command: str) -> Rows | None:
        """All rows of a menu, if they were read before; perhaps with other properties."""
        return self._menus.get(command)
