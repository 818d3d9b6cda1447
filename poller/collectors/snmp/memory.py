"""What a worker remembers of an SNMP target between its polls."""

from __future__ import annotations

from dataclasses import dataclass, field

from poller.collectors.snmp.plan import Shapes
from poller.collectors.snmp.shortcut import Shortcut
from poller.collectors.snmp.tuning import Tuning


@dataclass(slots=True)
class Memory:
    tuning: Tuning
    shapes: Shapes = field(default_factory=Shapes)
    shortcut: Shortcut | None = None
    #: It sent something dangerous.
    wary: bool = False
    #: Its last poll lasted long.
    far: bool = False
