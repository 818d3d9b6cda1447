"""When is a target's next slot? A grid: slot = phase + k * interval, stable over restarts.

The grid never drifts. All instants and durations are whole milliseconds, which Redis scores hold
without loss.
"""

from __future__ import annotations

import hashlib

#: A poll that starts later than this, and by more than half its interval, is behind its plan.
BEHIND_MS = 5_000
#: After downtime a fleet is polled again within this time, or within its interval if shorter.
RESUME_WITHIN_MS = 60_000


def phase_ms(target_id: int, interval_ms: int) -> int:
    """Return a stable offset in [0, interval), which spreads a fleet evenly over the interval."""
    digest = hashlib.blake2b(target_id.to_bytes(8, "big", signed=True), digest_size=8).digest()
    return int.from_bytes(digest, "big") % interval_ms


def next_slot_ms(target_id: int, interval_ms: int, after_ms: int) -> int:
    """Return the first slot strictly after an instant."""
    phase = phase_ms(target_id, interval_ms)
    intervals = (after_ms - phase) // interval_ms + 1
    return phase + intervals * interval_ms


def latest_slot_ms(target_id: int, interval_ms: int, at_ms: int) -> int:
    """Return the last slot that is not after an instant."""
    return next_slot_ms(target_id, interval_ms, at_ms) - interval_ms


def missed_slots(last_ms: int, plan_ms: int, interval_ms: int) -> int:
    """Return the unserved slots between two runs, 0 for the first run. No run makes up for them."""
    if not last_ms:
        return 0
    intervals = round((plan_ms - last_ms) / interval_ms)
    return max(0, intervals - 1)


def is_behind(plan_ms: int, now_ms: int, interval_ms: int) -> bool:
    """Whether a poll starts so late that the workers must have more to do than they can."""
    return now_ms - plan_ms > max(BEHIND_MS, interval_ms // 2)


def resume_ms(target_id: int, interval_ms: int, now_ms: int) -> int:
    """Return when to poll a target that is long overdue: once, soon, and spread over the fleet."""
    within_ms = min(interval_ms or RESUME_WITHIN_MS, RESUME_WITHIN_MS)
    return now_ms + phase_ms(target_id, within_ms)
