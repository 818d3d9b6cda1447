"""The uptime and the traffic of a device, as functions of its salt and the clock.

A counter is `rate * wave`. A wave is the strictly growing integral of a slowly varying activity,
and is zero at boot. Nothing is stored, so counters continue when the simulator restarts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

EPOCH = 1_767_225_600.0  # 2026-01-01: every device was installed before
DAY = 86_400.0

# Period in seconds and amplitude of the four waves. An amplitude below 1 keeps counters growing.
WAVES = ((DAY, 0.55), (DAY / 4, 0.5), (3600.0, 0.45), (900.0, 0.4))
UPTIME = len(WAVES)  # the fifth wave: seconds since boot

_ANGULAR = tuple(math.tau / period for period, _ in WAVES)
_SWING = tuple(amplitude * period / math.tau for period, amplitude in WAVES)


class Life(NamedTuple):
    """The installation time, the reboot interval and the activity of a device."""

    installed_at: float
    reboot_every: float  # seconds; 0 for never
    activity: float
    phase: float

    def boots(self, now: float) -> int:
        age = max(0.0, now - self.installed_at)
        return 1 + int(age // self.reboot_every) if self.reboot_every else 1

    def uptime(self, now: float) -> float:
        age = max(0.0, now - self.installed_at)
        return age % self.reboot_every if self.reboot_every else age

    def until_reboot(self, now: float) -> float | None:
        return self.reboot_every - self.uptime(now) if self.reboot_every else None

    def waves(self, now: float) -> tuple[float, ...]:
        """Return the four integrals of activity since boot, and the uptime."""
        age = now - self.installed_at
        up = age % self.reboot_every if self.reboot_every else age
        if up < 0.0:
            up = 0.0
        busy, phase, cos = self.activity, self.phase, math.cos
        w0, w1, w2, w3 = _ANGULAR
        s0, s1, s2, s3 = _SWING
        start = cos(phase)
        return (
            busy * (up + s0 * (start - cos(w0 * up + phase))),
            busy * (up + s1 * (start - cos(w1 * up + phase))),
            busy * (up + s2 * (start - cos(w2 * up + phase))),
            busy * (up + s3 * (start - cos(w3 * up + phase))),
            up,
        )


def life(salt: int, reboots: bool = False) -> Life:
    """Return the life of the device with this salt. With `reboots` it restarts within 5 minutes."""
    return Life(
        installed_at=EPOCH - DAY * (1 + salt % 60) - salt % 86_399,
        reboot_every=120.0 + salt % 181 if reboots else 0.0,
        activity=0.5 + (salt >> 8) % 1000 / 1000,
        phase=(salt >> 20) % 6283 / 1000,
    )
