"""How often traps cause a poll: at once, then once per gap, within a limit for all devices.

A burst of traps costs two polls: one for the first trap, one after the gap for the later ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: Devices whose last poll is remembered at least, before old ones are dropped.
_REMEMBERED = 1000


@dataclass(slots=True)
class TrapPace:
    """`gap_ms` between two polls of a device; `per_s` polls in total, at most `burst` at a time."""

    gap_ms: int
    per_s: float
    burst: int
    _polled_ms: dict[int, int] = field(default_factory=dict)  # by device: last poll for a trap
    _waiting: dict[int, int] = field(default_factory=dict)  # by device: when its poll is due
    _tokens: float = -1.0
    _refilled_ms: int = 0

    def request(self, device: int, now_ms: int) -> bool:
        """Plan a poll for a trap. Returns False when the device already waits for its poll."""
        if device in self._waiting:
            return False

        polled_ms = self._polled_ms.get(device, now_ms - self.gap_ms)
        next_ms = polled_ms + self.gap_ms
        self._waiting[device] = max(now_ms, next_ms)
        return True

    def due(self, now_ms: int) -> list[int]:
        """Return the devices to poll now, the longest waiting first; they count as polled."""
        self._refill(now_ms)
        due = sorted((at_ms, device) for device, at_ms in self._waiting.items() if at_ms <= now_ms)
        devices = [device for _, device in due[: int(self._tokens)]]
        self._tokens -= len(devices)

        for device in devices:
            del self._waiting[device]
            self._polled_ms[device] = now_ms
        return devices

    def retry(self, device: int, now_ms: int) -> None:
        """Plan the poll of a due device again, because the poll could not be requested."""
        self._polled_ms.pop(device, None)
        self._waiting.setdefault(device, now_ms)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _refill(self, now_ms: int) -> None:
        is_first = self._tokens < 0
        elapsed_s = (now_ms - self._refilled_ms) / 1000
        earned = self.burst if is_first else elapsed_s * self.per_s
        tokens = max(self._tokens, 0.0) + max(earned, 0.0)
        self._tokens = min(float(self.burst), tokens)
        self._refilled_ms = now_ms

        if len(self._polled_ms) > 2 * len(self._waiting) + _REMEMBERED:
            self._drop_old(now_ms)

    def _drop_old(self, now_ms: int) -> None:
        since_ms = now_ms - self.gap_ms
        recent = {device: at_ms for device, at_ms in self._polled_ms.items() if at_ms > since_ms}
        self._polled_ms = recent
