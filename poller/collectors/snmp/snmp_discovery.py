"""Is there an agent, and what should be read of it? Two values, and the table of modules, decide."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from poller.collectors.api import Poll, Suggestion
from poller.collectors.snmp import terminal_session
from poller.collectors.snmp.modules import device_table
from poller.collectors.snmp.modules.device_table import SYS_DESCR, SYS_OBJECT_ID, Choice
from poller.collectors.snmp.options import SnmpOptions


async def discover(poll: Poll) -> AsyncIterator[Suggestion]:
    """The target that an agent at this address should have. Raises DeviceErrors."""
    options: SnmpOptions = poll.options
    budget_s = poll.deadline - asyncio.get_running_loop().time()
    async with terminal_session.open_session(
        poll.address, options, poll.credential, budget_s
    ) as agent:
        found = await agent.get([SYS_DESCR, SYS_OBJECT_ID])
    descr, object_id = (
        _text(found[oid][1]) if oid in found else "" for oid in (SYS_DESCR, SYS_OBJECT_ID)
    )
    choice = device_table.table(options.match).choose(object_id, descr)
    given = options.model_dump(mode="json", exclude_unset=True)
    yield Suggestion({**given, "modules": list(choice.modules)}, _why(choice, object_id, descr))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _why(choice: Choice, object_id: str, descr: str) -> str:
    known = choice.entry.device if choice.entry and choice.entry.device else "an SNMP agent"
    said = " ".join(descr.split())[:80]
    return f"{known} (sysObjectID {object_id or 'none'})" + (f": {said}" if said else "")
