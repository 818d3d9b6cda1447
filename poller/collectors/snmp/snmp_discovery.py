"""Discovery of an SNMP agent: three values and the device table suggest the modules of a target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from poller.collectors.api import Poll, Suggestion
from poller.collectors.snmp import terminal_session
from poller.collectors.snmp.metrics.label_text import value_text
from poller.collectors.snmp.modules import device_table
from poller.collectors.snmp.modules.device_table import SYS_DESCR, SYS_OBJECT_ID, Choice
from poller.collectors.snmp.options import SnmpOptions

SYS_NAME = "1.3.6.1.2.1.1.5.0"
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
        values = await session.get([SYS_DESCR, SYS_OBJECT_ID, SYS_NAME])

    object_id = value_text(values.get(SYS_OBJECT_ID), "DisplayString")
    descr = value_text(values.get(SYS_DESCR), "DisplayString")
    name = value_text(values.get(SYS_NAME), "DisplayString")
    choice = device_table.table(options.match).choose(object_id, descr)
    suggested = options.model_dump(mode="json", exclude_unset=True)
    suggested["modules"] = list(choice.modules)
    yield Suggestion(
        suggested,
        _reason(choice, object_id, descr),
        name,
        _facts(choice, object_id, descr, name),
    )


def _facts(choice: Choice, object_id: str, descr: str, name: str) -> dict[str, str]:
    """Return what the agent says about itself, and what the device table makes of it."""
    device = choice.entry.device if choice.entry is not None else ""
    facts = {"sysName": name, "sysDescr": descr, "device": device, "sysObjectID": object_id}
    return {key: text for key, text in facts.items() if text}


def _reason(choice: Choice, object_id: str, descr: str) -> str:
    """Return one line that says which device was recognised."""
    device = "an SNMP agent"
    if choice.entry is not None and choice.entry.device:
        device = choice.entry.device

    reason = f"{device} (sysObjectID {object_id or 'none'})"
    short_descr = " ".join(descr.split())[:_LONGEST_DESCR]
    return f"{reason}: {short_descr}" if short_descr else reason
