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


def missed_slots(plan_ms: int, interval_ms: int, next_ms: int) -> int:
    """How many slots were skipped between the slot just served and the next one."""
    return max(0, (next_ms - plan_ms - 1) // interval_ms)
