"""Detects steps of the board's clock, which is the wall clock of the Redis server."""

from __future__ import annotations

#: A smaller difference between the two clocks is a delay, not a step.
STEP_MS = 5_000


class ClockSteps:
    """Compares the server's wall clock with the monotonic clock of this process."""

    def __init__(self) -> None:
        self._server_ms = 0
        self._mono = 0.0

    def check(self, server_ms: int, mono: float) -> int:
        """The step of the server's clock since the last check, in ms; 0 if there was none."""
        expected_ms = self.now_ms(mono)
        is_first = self._server_ms == 0
        step_ms = 0 if is_first else server_ms - expected_ms

        self._server_ms = server_ms
        self._mono = mono
        return step_ms if abs(step_ms) >= STEP_MS else 0

    def now_ms(self, mono: float) -> int:
        """The server's clock at a monotonic instant, computed from the last check."""
        elapsed_ms = (mono - self._mono) * 1000
        return self._server_ms + round(elapsed_ms)
