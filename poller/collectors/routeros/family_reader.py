"""One pass over a router: what a poll asks for each family, and what is made of a refusal.

A refusal costs one menu. When the connection is out of step, the families after it are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Mapping, Sequence

from poller.collectors import api
from poller.collectors.routeros.api_client import REFUSALS
from poller.collectors.routeros.command_cache import Conversation
from poller.collectors.routeros.families.addresses import LEASES
from poller.collectors.routeros.families.family import (
    DHCP_NAME,
    Ask,
    Family,
    Row,
    Rows,
    Table,
    Then,
)
from poller.collectors.routeros.families.system import IDENTITY, RESOURCE
from poller.collectors.routeros.router_memory import Memory
from poller.collectors.routeros.row_readings import Answer

#: More would take a worker's time from everybody else: such a menu is left out, and named.
MOST_ROWS = 20_000


class Asking:
    """What one poll asks, and what it is answered. `chosen` are the options that choose rows."""

    def __init__(
        self,
        memory: Memory,
        chosen: Mapping[str, Sequence[str]],
        now: float,
        fair_until: float = math.inf,
    ) -> None:
        self.answers: list[Answer] = []
        self.failures: list[api.PartFailed] = []
        self.at = ""  # the family under way
        self.is_there = False  # it answered something, and not only with refusals
        self._memory = memory
        self._chosen = chosen
        self._now = now
        self._fair_until = fair_until  # who is asked later has too little time to be blamed

    async def read(self, router: Conversation, families: Sequence[Family]) -> None:
        """Raises when the connection is not in step with the router any more."""
        for family in families:
            self.at = family.name
            await self._read_family(router, family)
        self.is_there = bool(self.answers)
        if not self.answers and (self.failures or not families):
            await self._greet(router)

    async def _read_family(self, router: Conversation, family: Family) -> None:
        failed, began = len(self.failures), asyncio.get_running_loop().time()
        try:
            for ask in family.asks:
                await self._read(router, family, ask)
        except api.SessionLost:
            raise
        except api.DeviceError as error:
            unlucky = isinstance(error, api.DeviceTimeout) and began > self._fair_until
            self._memory.note_cut(family, error, self._now, unlucky=unlucky)
            raise
        self._memory.note_read(family, self.failures[failed:], self._now)

    async def _greet(self, router: Conversation) -> None:
        """Nothing was due, or all of it refused: does it speak to us at all?"""
        self.at = IDENTITY.name
        with contextlib.suppress(*REFUSALS):
            await router.say(IDENTITY.asks[0].command, IDENTITY.asks[0].proplist())
            self.is_there = True

    async def _read(self, router: Conversation, family: Family, ask: Ask) -> None:
        queries = self._queries(ask)
        if queries is None or self._memory.refuses(ask, self._now):
            return
        try:
            rows = await self._rows(router, ask, queries)
        except api.DeviceUnsupported:  # it has no such menu: noted, and no error
            return
        except REFUSALS as error:  # it said no to this one: the session goes on
            self.failures.append(api.PartFailed(family.name, _explained(error, family)))
            return
        if family is RESOURCE and rows:
            self._memory.note_router(rows[0])
        for table in ask.tables:
            shaped = self._reshaped(table, rows)
            if len(shaped) > MOST_ROWS:
                self.failures.append(api.PartFailed(family.name, _too_many(ask, len(shaped))))
                return
            self.answers.append(Answer(family.name, table, shaped))

    def _queries(self, ask: Ask) -> Sequence[str] | None:
        """None: it is about rows that were chosen, and none were."""
        if ask.wanted is None:
            return [f"?{query}" for query in ask.queries]
        name, option = ask.wanted
        words = [word for value in self._chosen[option] for word in (f"?{name}={value}", "?#|")]
        return [words[0], *words[2:]] if words else None

    async def _rows(self, router: Conversation, ask: Ask, queries: Sequence[str]) -> Rows:
        proplist = () if ask.count else ask.proplist()
        known = router.menu(ask.command) if ask.only else None
        if known is not None and ask.only:
            rows: Rows = [row for row in known if ask.only(row)]
        else:
            words = dict.fromkeys(("count-only",) if ask.count else ask.words, "")
            rows = await self._say(router, ask.command, proplist, queries, words)
        if ask.then and rows:
            rows = await self._more(router, ask.then, rows, proplist)
        return _renamed(rows, ask.called)

    async def _more(
        self, router: Conversation, then: Then, rows: Rows, proplist: Sequence[str]
    ) -> Rows:
        properties = then.properties or proplist
        if not then.numbers:
            return then.join(rows, await self._say(router, then.command, properties, (), {}))
        joined: list[Row] = []
        for group in [[row] for row in rows] if then.one_by_one else [rows]:
            # A comma would make two of a name.
            names = ",".join(
                row["name"] for row in group if row.get("name") and "," not in row["name"]
            )
            words = {then.numbers: names, "once": ""}
            more = await self._say(router, then.command, properties, (), words) if names else []
            joined += then.join(group, more)
        return joined

    async def _say(
        self,
        router: Conversation,
        command: str,
        proplist: Sequence[str],
        queries: Sequence[str],
        words: Mapping[str, str],
    ) -> Rows:
        try:
            return await router.say(command, proplist, queries, **words)
        except api.DeviceUnsupported:
            self._memory.note_refused(command, self._now)
            raise

    def _reshaped(self, table: Table, rows: Rows) -> Rows:
        if table is LEASES:
            self._memory.leases.learn(rows)
        shaped = table.reshape(rows) if table.reshape else rows
        return self._memory.leases.named(shaped) if DHCP_NAME in table.made else shaped


def _renamed(rows: Rows, called: Mapping[str, str]) -> Rows:
    """Properties by the names our tables know."""
    if not called:
        return rows
    ours = {theirs: name for name, theirs in called.items()}
    return [{ours.get(name, name): text for name, text in row.items()} for row in rows]


def _too_many(ask: Ask, rows: int) -> api.DeviceError:
    text = f"{ask.command} has {rows:,} rows, and at most {MOST_ROWS:,} are read"
    return api.DeviceProtocolError(text, hint="leave the family away")


def _explained(error: api.DeviceError, family: Family) -> api.DeviceError:
    """Not allowed: then it says what to allow."""
    if not isinstance(error, api.DeviceAuthFailed):
        return error
    cause = f"{error.cause}; the group of the login needs the policies {', '.join(family.policies)}"
    return api.DeviceAuthFailed(
        error.message, cause, f"/user/group/set GROUP policy={','.join(family.policies)}"
    )
