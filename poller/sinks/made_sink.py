"""A sink that was made for the settings: its name there, its kind, and the samples it left out."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from poller.domain.failures import outcome
from poller.sinks.api import WRITE_POLLS, Sink


class LeftOut:
    """The single samples that a sink left out for good, and the newest reason. Safe for threads."""

    def __init__(self) -> None:
        self.samples = 0  # since this process started
        self.reason = ""
        self._lock = threading.Lock()

    def add(self, samples: int, reason: str) -> None:
        """Count samples. `Stores.dropped` of the sink is this method."""
        with self._lock:
            self.samples += samples
            self.reason = outcome.clean(reason)


@dataclass(frozen=True, slots=True)
class MadeSink:
    """A sink under its name in the settings. Two sinks of one kind have two names."""

    name: str
    kind: str
    sink: Sink
    left_out: LeftOut = field(default_factory=LeftOut)

    @property
    def write_polls(self) -> int:
        """The polls of one call of `write` when many wait."""
        polls: int = getattr(self.sink, "write_polls", WRITE_POLLS)
        return polls

    @property
    def takes_ends(self) -> bool:
        """Whether the sink wants samples that end their series."""
        return bool(getattr(self.sink, "takes_ends", False))
