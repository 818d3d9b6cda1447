"""Which modules does a target get that names none? Those that suit what its device says it is.

It is asked where everything is read anyway; polls by the shortcut never ask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.snmp.metrics import label_text
from poller.collectors.snmp.metrics.label_text import Value
from poller.collectors.snmp.read.parallel_links import Hands
from poller.collectors.snmp.read.walker import Walker

SYS_OBJECT_ID, SYS_DESCR = "1.3.6.1.2.1.1.2.0", "1.3.6.1.2.1.1.1.0"
#: Where everything is read by every poll, the device is asked so often what it is.
AGE_S = 3600.0

#: Module names for a sysObjectID and a sysDescr.
Choose = Callable[[str, str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Chosen:
    modules: tuple[str, ...]
    at: float


async def ask(
    hands: Hands, choose: Choose, known: Chosen | None, now: float, often: bool
) -> Chosen:
    """What was chosen before, if everything is read too `often` to ask every time. Raises DeviceErrors."""
    if known is not None and often and now - known.at < AGE_S:
        return known
    ((object_id, descr),) = await hands.do(_identity, (None,))
    return Chosen(choose(_text(object_id), _text(descr)), now)


async def _identity(walker: Walker, _: None) -> tuple[Value, Value]:
    found = dict(await walker.get((SYS_OBJECT_ID, SYS_DESCR)))
    return found.get(SYS_OBJECT_ID), found.get(SYS_DESCR)


def _text(value: Value) -> str:
    return label_text.value_text(value, "DisplayString")
