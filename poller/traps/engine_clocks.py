"""Whether a signed message is recent, by its engine's restarts and clock (RFC 3414, 3.2.7b)."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

#: How far a message may lie behind the current time of its engine.
WINDOW_S = 150
MAX_BOOTS = 2**31 - 1
#: Engines whose clocks are kept. The next message of a dropped engine sets its clock again.
MAX_ENGINES = 100_000


class _EngineClock(NamedTuple):
    boots: int
    #: Highest engine time received.
    latest: int
    #: The engine's clock minus ours.
    ahead_s: float


class EngineClocks:
    """Clocks by engine and user. Only messages with a valid signature may be passed in."""

    def __init__(self) -> None:
        self._clocks: OrderedDict[tuple[bytes, str], _EngineClock] = OrderedDict()

    def is_timely(
        self, engine_id: bytes, boots: int, time: int, now_s: float, user: str = ""
    ) -> bool:
        """False for an old message; a newer one advances the engine's clock. `now_s` is monotonic.

        Each `user` has its own clocks: a password can sign for any engine, and must not make the
        messages of other users old.
        """
        if boots == MAX_BOOTS:
            return False

        key = (engine_id, user)
        clock = self._clocks.get(key)
        if clock is None or (boots, time) > (clock.boots, clock.latest):
            clock = _EngineClock(boots, time, time - now_s)
            self._clocks[key] = clock
            self._clocks.move_to_end(key)
            if len(self._clocks) > MAX_ENGINES:
                self._clocks.popitem(last=False)

        expected = now_s + clock.ahead_s
        return boots == clock.boots and time >= expected - WINDOW_S
