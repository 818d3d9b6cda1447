"""What a page says of old values: a target that is not read any more keeps its last ones."""

from __future__ import annotations

from collections.abc import Sequence

from poller.db.inventory.targets import Target
from poller.domain.record.overview import is_long_overdue
from poller.presentation import formatting

#: Targets that are named; a device has a few.
_MOST_NAMED = 3


def is_old(target: Target, read_ms: int, now_ms: int) -> bool:
    """Whether values are older than their target's next polls allow."""
    interval_ms = target.max_ms or target.interval_ms
    return is_long_overdue(read_ms + interval_ms, interval_ms, now_ms)


def age(target: Target, read_ms: int, now_ms: int) -> str:
    """The age of old values: `10 m 3 s ago`; "" for those of now."""
    return f"{formatting.age(now_ms - read_ms)} ago" if is_old(target, read_ms, now_ms) else ""


def note(read: Sequence[tuple[Target, int | None]], now_ms: int) -> str:
    """The sentence about targets whose values are old, from when each was read; "" for none."""
    known = [(target, at_ms) for target, at_ms in read if at_ms is not None]
    old = [(target, at_ms) for target, at_ms in known if is_old(target, at_ms, now_ms)]
    if not old:
        return ""
    if len(old) > _MOST_NAMED:
        newest = max(at_ms for _, at_ms in old)
        which = "All targets" if len(old) == len(read) else f"{len(old)} of {len(read)} targets"
        since = formatting.age(now_ms - newest)
        return f"{which} were not read for {since} or longer: their values are of then."
    lasts = ", ".join(f"{each.name} {age(each, at_ms, now_ms)}" for each, at_ms in old)
    whose = "its values are" if len(old) == 1 else "their values are"
    return f"Read last: {lasts}; {whose} of then, not of now."
