"""Discovery of an SNMP agent: two values and the device table suggest the modules of a target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from poller.collectors.api import Poll, Suggestion
from poller.collectors.snmp import terminal_session
from poller.collectors.snmp.metrics.label_text import value_text
from poller.collectors.snmp.modules import device_table
from poller.collectors.snmp.modules.device_table import SYS_DESCR, SYS_OBJECT_ID, Choice
from poller.collectors.snmp.options import SnmpOptions

_LONGEST_DESCR = 80


async def discover(poll: Poll) -> AsyncIterator[Suggestion]:
    """Suggest a target for the agent at this address.

    Raises DeviceErrors.
    """
    options: SnmpOptions = poll.options
    budget_s = poll.deadline - asyncio.get_running_loop().time()
    async with terminal_session.open_session(
        poll.address, options, poll.credential, budget_s
    ) as session:
        values = await session.get([SYS_DESCR, SYS_OBJECT_ID])

    object_id = value_text(values.get(SYS_OBJECT_ID), "DisplayString")
    descr = value_text(values.get(SYS_DESCR), "DisplayString")
    choice = device_table.table(options.match).choose(object_id, descr)
    suggested = options.model_dump(mode="json", exclude_unset=True)
    suggested["modules"] = list(choice.modules)
    yield Suggestion(suggested, _reason(choice, object_id, descr))


def _reason(choice: Choice, object_id: str, descr: str) -> str:
    """Return one line that says which device was recognised."""
    device = "an SNMP agent"
    if choice.entry is not None and choice.entry.device:
        device = choice.entry.device

    reason = f"{device} (sysObjectID {object_id or 'none'})"
    short_descr = " ".join(descr.split())[:_LONGEST_DESCR]
    return f"{reason}: {short_descr}" if short_descr else reason
