"""When is a target's next slot? A grid: slot = phase + k * interval, never drifting, stable over restarts.

All instants and durations are whole milliseconds: they travel to Redis scores and back unharmed.
"""

from __future__ import annotations

import hashlib


def phase_ms(target_id: int, interval_ms: int) -> int:
    """A stable offset in [0, interval): spreads a fleet evenly and survives restarts and leader changes."""
    digest = hashlib.blake2b(target_id.to_bytes(8, "big", signed=True), digest_size=8).digest()
    return int.from_bytes(digest, "big") % interval_ms


def next_slot_ms(target_id: int, interval_ms: int, after_ms: int) -> int:
    """The first slot strictly after an instant."""
    phase = phase_ms(target_id, interval_ms)
    return phase + ((after_ms - phase) // interval_ms + 1) * interval_ms


def missed_slots(last_ms: int, plan_ms: int, interval_ms: int) -> int:
    """How many slots went by unserved between two runs; 0 for the first run. They are never made up for."""
    return max(0, round((plan_ms - last_ms) / interval_ms) - 1) if last_ms else 0


def resume_ms(target_id: int, interval_ms: int, now_ms: int) -> int:
    """When to poll a target that is long overdue: once, soon, and not together with all the others."""
    return now_ms + phase_ms(target_id, min(interval_ms or RESUME_WITHIN_MS, RESUME_WITHIN_MS))


#: After downtime a fleet is polled again within this time (or its interval, if that is shorter).
RESUME_WITHIN_MS = 60_000
