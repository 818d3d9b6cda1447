"""How often may a device's traps have it polled? At once, then at most once in a while, and not too many in all.

A burst costs two polls: one for its first trap, one when the gap is over, for what came meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Pace:
    """`gap_ms` between two polls of a device; `per_s` polls of all, and no more than `burst` at a time."""

    gap_ms: int
    per_s: float
    burst: int
    _asked: dict[int, int] = field(
        default_factory=dict
    )  # device -> when it was last polled for a trap
    _waiting: dict[int, int] = field(
        default_factory=dict
    )  # device -> when it may be polled; the oldest first
    _tokens: float = -1.0
    _at_ms: int = 0

    def ask(self, device: int, now_ms: int) -> bool:
        """A trap came. False when its poll waits already, for an earlier trap."""
        if device in self._waiting:
            return False
        self._waiting[device] = max(
            now_ms, self._asked.get(device, now_ms - self.gap_ms) + self.gap_ms
        )
        return True

    def due(self, now_ms: int) -> list[int]:
        """Devices to poll now, those that wait longest first; they count as polled."""
        self._refill(now_ms)
        ripe = sorted((at, device) for device, at in self._waiting.items() if at <= now_ms)[
            : int(self._tokens)
        ]
        self._tokens -= len(ripe)
        for _, device in ripe:
            del self._waiting[device]
            self._asked[device] = now_ms
        return [device for _, device in ripe]

    def again(self, device: int, now_ms: int) -> None:
        """It could not be polled after all: it waits as before."""
        self._asked.pop(device, None)
        self._waiting.setdefault(device, now_ms)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _refill(self, now_ms: int) -> None:
        earned = (now_ms - self._at_ms) / 1000 * self.per_s if self._tokens >= 0 else self.burst
        self._tokens = min(float(self.burst), max(self._tokens, 0.0) + max(earned, 0.0))
        self._at_ms = now_ms
        if len(self._asked) > 2 * len(self._waiting) + 1000:
            self._asked = {
                device: at for device, at in self._asked.items() if at > now_ms - self.gap_ms
            }
