"""How often Python looks for garbage. Polls make and drop hundreds of thousands of small objects a second, nearly all
of which die by themselves; with Python's own thresholds a third of a worker's time went into looking at them.
"""

from __future__ import annotations

import gc

#: New objects that are still there before the young ones are looked through; so many may be garbage in circles.
YOUNG = 200_000
#: How often the young are, before those that survived once; and these, before all.
MIDDLE, OLD = 10, 20


def look_less_often() -> None:
    """For a worker process. What was imported by now stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
