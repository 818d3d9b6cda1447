"""The board's clock in terms of the monotonic clock of this process.

The server read its clock between a request and its reply. One slow reply says little; the replies
of a process together say it to a millisecond or so, as long as some of them are quick.
"""

from __future__ import annotations

import threading

#: Two sound clocks drift apart by less than this share.
DRIFT = 0.0002
#: The server's clock is read in whole milliseconds, rounded down.
_RESOLUTION_MS = 1


class BoardClock:
    """The offset from this process's monotonic clock to the board's clock, safe for threads.

    The lowest and the highest possible offset are known. Each reply narrows them down, and time
    widens them by the drift. A reply that contradicts them counts alone: a clock was set.

    The lowest one is used. An instant is then never later than it was, nor earlier than the clock
    of the last reply before it: what one worker did before another is also stamped before it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._low_ms = float("-inf")
        self._high_ms = float("inf")
        self._recorded_mono = 0.0

    def record(self, now_ms: int, sent_mono: float, read_mono: float) -> float:
        """Learn from one reply. Returns the lowest possible offset in ms."""
        low_ms = now_ms - read_mono * 1000
        high_ms = now_ms + _RESOLUTION_MS - sent_mono * 1000
        with self._lock:
            drift_ms = DRIFT * abs(read_mono - self._recorded_mono) * 1000
            both_low_ms = max(low_ms, self._low_ms - drift_ms)
            both_high_ms = min(high_ms, self._high_ms + drift_ms)
            if both_low_ms <= both_high_ms:
                low_ms, high_ms = both_low_ms, both_high_ms
            self._low_ms = low_ms
            self._high_ms = high_ms
            self._recorded_mono = read_mono
        return low_ms
