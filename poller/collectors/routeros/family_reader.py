"""Reads the families of one poll from a router, menu by menu.

A refusal costs one menu. An error that cuts the connection costs all families after it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from poller.collectors import api
from poller.collectors.routeros.api_client import REFUSALS, ApiClient
from poller.collectors.routeros.families.addresses import LEASES
from poller.collectors.routeros.families.family import (
    DHCP_NAME,
    Family,
    FollowUp,
    Menu,
    Row,
    Rows,
    Table,
)
from poller.collectors.routeros.families.system import IDENTITY, RESOURCE
from poller.collectors.routeros.router_memory import RouterMemory
from poller.collectors.routeros.row_readings import TableRows

#: A menu with more rows is left out and named: its readings would delay all other polls.
MAX_ROWS = 20_000

#: Makes a context that raises DeviceTimeout with this text at the end of the poll. The number is
#: the count of rows read so far, whose conversion takes time after the last command.
TimeLimit = Callable[[str, int], AbstractAsyncContextManager[None]]


class CommandCache:
    """The commands of one poll: each distinct command is sent once."""

    def __init__(self, client: ApiClient, time_limit: TimeLimit) -> None:
        self._client = client
        self._time_limit = time_limit
        self._replies: dict[object, Rows] = {}
        self._menus: dict[str, Rows] = {}
        self._rows_read = 0

    async def run(
        self, command: str, proplist: Sequence[str] = (), queries: Sequence[str] = (), **words: str
    ) -> Rows:
        """Return the rows of a command. Raises the client's errors, and DeviceTimeout."""
        key = (command, frozenset(proplist), tuple(queries), tuple(words.items()))
        if key in self._replies:
            return self._replies[key]

        attributes = {".proplist": ",".join(proplist), **words} if proplist else words
        async with self._time_limit(f"no complete answer to {command}", self._rows_read):
            rows = await self._client.call(command, *queries, **attributes)
        self._replies[key] = rows
        self._rows_read += len(rows)
        if proplist and not queries:
            self._menus[command] = rows
        return rows

    def whole_menu(self, command: str) -> Rows | None:
        """Return all rows of a menu if this poll has read them, perhaps with other properties."""
        return self._menus.get(command)


class FamilyReader:
    """Reads families and collects rows and failures.

    `selected` holds the values of the options that `Menu.selected` names.
    """

    def __init__(
        self,
        memory: RouterMemory,
        selected: Mapping[str, Sequence[str]],
        now: float,
        fair_until: float = math.inf,
    ) -> None:
        self.tables: list[TableRows] = []
        self.failures: list[api.PartFailed] = []
        self.current = ""  # the family being read
        self.answered_mono = 0.0  # instant of the last reply with rows, by the loop's clock
        self.router_replies = False  # the router answered a command without a refusal
        self._memory = memory
        self._selected = selected
        self._now = now
        self._fair_until = fair_until  # a family read later has too little time to be blamed

    async def read(self, commands: CommandCache, families: Sequence[Family]) -> None:
        """Read the families. Raises the DeviceError that cut the connection."""
        for family in families:
            self.current = family.name
            await self._read_family(commands, family)
        self.router_replies = bool(self.tables)
        if not self.tables and (self.failures or not families):
            await self._check_router_replies(commands)

    async def _read_family(self, commands: CommandCache, family: Family) -> None:
        failures_before = len(self.failures)
        started = asyncio.get_running_loop().time()
        try:
            for menu in family.menus:
                await self._read_menu(commands, family, menu)
        except api.SessionLost:
            raise
        except api.DeviceError as error:
            unlucky = isinstance(error, api.DeviceTimeout) and started > self._fair_until
            self._memory.record_cut(family, error, self._now, unlucky=unlucky)
            raise
        self._memory.record_read(family, self.failures[failures_before:], self._now)

    async def _check_router_replies(self, commands: CommandCache) -> None:
        """Read the identity: no family was due, or the router refused all of them."""
        self.current = IDENTITY.name
        menu = IDENTITY.menus[0]
        with contextlib.suppress(*REFUSALS):
            await commands.run(menu.command, menu.proplist())
            self.router_replies = True

    async def _read_menu(self, commands: CommandCache, family: Family, menu: Menu) -> None:
        queries = self._queries(menu)
        if queries is None or self._memory.lacks(menu, self._now):
            return
        try:
            rows = await self._rows(commands, menu, queries)
        except api.DeviceUnsupported:  # the router has no such menu, which is no failure
            return
        except REFUSALS as error:
            self.failures.append(api.PartFailed(family.name, _with_policies(error, family)))
            return

        self.answered_mono = asyncio.get_running_loop().time()
        if family is RESOURCE and rows:
            self._memory.record_resource(rows[0])
        for table in menu.tables:
            transformed = self._transform(table, rows)
            if len(transformed) > MAX_ROWS:
                too_many = _too_many_rows(menu, len(transformed))
                self.failures.append(api.PartFailed(family.name, too_many))
                return
            self.tables.append(TableRows(family.name, table, transformed))

    def _queries(self, menu: Menu) -> Sequence[str] | None:
        """Return the query words of a menu; None if it needs selected rows and none are."""
        if menu.selected is None:
            return [f"?{query}" for query in menu.queries]
        name, option = menu.selected
        values = self._selected[option]
        if not values:
            return None
        words = [f"?{name}={values[0]}"]
        for value in values[1:]:
            words += [f"?{name}={value}", "?#|"]
        return words

    async def _rows(self, commands: CommandCache, menu: Menu, queries: Sequence[str]) -> Rows:
        proplist: Sequence[str] = ()
        if not menu.count_only:
            proplist = menu.proplist()

        rows = _filtered_menu(commands, menu)
        if rows is None:
            names = ("count-only",) if menu.count_only else menu.words
            words = dict.fromkeys(names, "")
            rows = await self._run(commands, menu.command, proplist, queries, words)

        if menu.follow_up and rows:
            rows = await self._follow_up(commands, menu.follow_up, rows, proplist)
        return _renamed(rows, menu.renames)

    async def _follow_up(
        self, commands: CommandCache, follow_up: FollowUp, rows: Rows, proplist: Sequence[str]
    ) -> Rows:
        properties = follow_up.properties or proplist
        command = follow_up.command
        if not follow_up.names_word:
            return follow_up.join(rows, await self._run(commands, command, properties, (), {}))

        groups = [[row] for row in rows] if follow_up.one_by_one else [rows]
        joined: list[Row] = []
        for group in groups:
            names = _joined_names(group)
            details: Rows = []
            if names:
                words = {follow_up.names_word: names, "once": ""}
                details = await self._run(commands, command, properties, (), words)
            joined += follow_up.join(group, details)
        return joined

    async def _run(
        self,
        commands: CommandCache,
        command: str,
        proplist: Sequence[str],
        queries: Sequence[str],
        words: Mapping[str, str],
    ) -> Rows:
        try:
            return await commands.run(command, proplist, queries, **words)
        except api.DeviceUnsupported:
            self._memory.record_missing(command, self._now)
            raise

    def _transform(self, table: Table, rows: Rows) -> Rows:
        if table is LEASES and len(rows) <= MAX_ROWS:
            self._memory.dhcp.replace(rows)
        if table.transform:
            rows = table.transform(rows)
        return self._memory.dhcp.add_to(rows) if DHCP_NAME in table.computed else rows


def _filtered_menu(commands: CommandCache, menu: Menu) -> Rows | None:
    """Return the menu's rows from a whole menu that this poll has read; None if there is none."""
    if menu.row_filter is None:
        return None
    whole = commands.whole_menu(menu.command)
    if whole is None:
        return None
    return [row for row in whole if menu.row_filter(row)]


def _joined_names(rows: Rows) -> str:
    """Join the names of rows. A name with a comma would count as two and is left out."""
    names = (row.get("name", "") for row in rows)
    return ",".join(name for name in names if name and "," not in name)


def _renamed(rows: Rows, renames: Mapping[str, str]) -> Rows:
    """Return rows with the property names of our tables."""
    if not renames:
        return rows
    table_names = {menu_name: name for name, menu_name in renames.items()}
    return [{table_names.get(name, name): text for name, text in row.items()} for row in rows]


def _too_many_rows(menu: Menu, rows: int) -> api.DeviceError:
    text = f"{menu.command} has {rows:,} rows, and at most {MAX_ROWS:,} are read"
    return api.DeviceProtocolError(text, hint="leave out the family")


def _with_policies(error: api.DeviceError, family: Family) -> api.DeviceError:
    """Add the policies that the login needs to an error about permissions."""
    if not isinstance(error, api.DeviceAuthFailed):
        return error
    policies = ", ".join(family.policies)
    cause = f"{error.cause}; the group of the login needs the policies {policies}"
    hint = f"/user/group/set GROUP policy={','.join(family.policies)}"
    return api.DeviceAuthFailed(error.message, cause, hint)
