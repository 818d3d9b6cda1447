"""Which gauges are states: their numbers name something (1 is up, 2 is down), so a mean says
nothing, and a roll-up keeps the time that each value lasted.

The name decides, so that a series is rolled up in the same way every day.
"""

from __future__ import annotations

#: Endings of names of states: of the standard MIBs, of Prometheus, and of the built-in collectors.
_ENDINGS = (
    "Status",
    "State",
    "Mode",
    "Enable",
    "Enabled",
    "Present",
    "Role",
    "_status",
    "_state",
    "_mode",
    "_enabled",
    "_running",
    "_disabled",
    "_up",
    "_success",
)
_NAMES = frozenset({"up"})


def is_state(name: str) -> bool:
    """Whether the numbers of this gauge are names of states."""
    return name.endswith(_ENDINGS) or name in _NAMES
