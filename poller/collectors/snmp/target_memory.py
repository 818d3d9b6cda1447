"""What a worker remembers of an SNMP target between its polls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poller.collectors.snmp.metrics.reading_plan import Shapes
from poller.collectors.snmp.modules.device_table import ChosenModules
from poller.collectors.snmp.modules.module_model import WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read.request_size import Tuning
from poller.collectors.snmp.read.shortcut import Shortcut
from poller.collectors.snmp.wire.value_types import Value


@dataclass(slots=True)
class Memory:
    #: What it was learned for, and how the device is read.
    module_set: ModuleSet
    walk_settings: WalkSettings
    tuning: Tuning
    shapes: Shapes = field(default_factory=Shapes)
    shortcut: Shortcut | None = None
    #: Rows there were when everything was read last.
    rows: int = 0
    #: What the device said of its own changes when all of it was read last, and when that was.
    signals: Mapping[str, Value] = field(default_factory=dict)
    signals_at: float = 0.0
    #: The modules that suit the device, where the target names none.
    chosen: ChosenModules | None = None
    #: It sent something dangerous.
    wary: bool = False
    #: Its last poll lasted long.
    far: bool = False

    @classmethod
    def of(cls, module_set: ModuleSet, walk_settings: WalkSettings) -> Memory:
        return cls(module_set, walk_settings, Tuning(walk_settings.max_repetitions))
