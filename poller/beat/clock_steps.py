"""Did the board's clock jump? It is the server's wall clock, and somebody may set it; ours only counts."""

from __future__ import annotations

#: What two clocks may differ between two looks without anybody having touched one.
STEP_MS = 5_000


class Clock:
    """Compares the server's wall clock with this process's monotonic clock."""

    def __init__(self) -> None:
        self._server_ms = 0
        self._own_s = 0.0

    def look(self, server_ms: int, own_s: float) -> int:
        """The step since the last look, in milliseconds; 0 if there was none."""
        passed_ms = (own_s - self._own_s) * 1000
        step_ms = round(server_ms - self._server_ms - passed_ms) if self._server_ms else 0
        self._server_ms, self._own_s = server_ms, own_s
        return step_ms if abs(step_ms) >= STEP_MS else 0

    def now_ms(self, own_s: float) -> int:
        """The server's clock, as far as we know without asking it."""
        return self._server_ms + round((own_s - self._own_s) * 1000)
