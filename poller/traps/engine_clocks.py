"""Is a signed message from now? What each engine last said of its restarts and its clock (RFC 3414, 3.2 step 7b)."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

#: How far a message may lie behind what its engine's clock must show by now.
WINDOW_S = 150
MOST_BOOTS = 2**31 - 1
#: Engines that are remembered; a forgotten one is believed anew.
MOST = 100_000


class _Seen(NamedTuple):
    boots: int
    latest: int  # the highest time of the engine that was received
    ahead_s: float  # its clock minus ours


class Clocks:
    """Only for messages whose signature is right: anything else must not move a clock."""

    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[bytes, str], _Seen] = OrderedDict()

    def timely(self, engine_id: bytes, boots: int, time: int, now_s: float, user: str = "") -> bool:
        """False for an old message; a newer one moves our idea of that engine's clock. `now_s` never goes back.

        By `user`: whoever has one password can sign for any engine, and must not move the clock of others.
        """
        name = engine_id, user
        seen = self._seen.get(name)
        if boots == MOST_BOOTS:
            return False
        if seen is None or boots > seen.boots or (boots == seen.boots and time > seen.latest):
            self._seen[name] = seen = _Seen(boots, time, time - now_s)
            self._seen.move_to_end(name)
            while len(self._seen) > MOST:
                self._seen.popitem(last=False)
        return boots == seen.boots and time >= now_s + seen.ahead_s - WINDOW_S
