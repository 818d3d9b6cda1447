"""Alerts that the database refused: left alone for a while, so that no other one waits for them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

#: The pause before a refused alert is tried again; it doubles with every refusal.
FIRST_PAUSE_S = 60.0
LONGEST_PAUSE_S = 3_600.0
#: An alert that was not refused again for so long after its pause begins anew.
_FORGOTTEN_S = 600.0


@dataclass(slots=True)
class _Pause:
    length_s: float
    until_mono: float


@dataclass(slots=True)
class RefusedAlerts:
    """The identities of refused alerts, each with its pause."""

    _pauses: dict[str, _Pause] = field(default_factory=dict)

    def paused(self) -> set[str]:
        """Return the alerts that are not to be tried now."""
        now_mono = time.monotonic()
        for identity, pause in list(self._pauses.items()):
            if now_mono > pause.until_mono + _FORGOTTEN_S:
                del self._pauses[identity]
        return {name for name, each in self._pauses.items() if now_mono < each.until_mono}

    def add(self, identities: Sequence[str]) -> list[str]:
        """Begin a pause for each of these. Returns those that were not refused before."""
        new = []
        for identity in identities:
            last = self._pauses.get(identity)
            length_s = min(2 * last.length_s, LONGEST_PAUSE_S) if last else FIRST_PAUSE_S
            self._pauses[identity] = _Pause(length_s, time.monotonic() + length_s)
            if last is None:
                new.append(identity)
        return new
