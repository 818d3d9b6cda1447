"""The queues of jobs: one per package, taken by the workers that have the package installed."""

from __future__ import annotations

import re

QUEUE_PREFIX = "job."


def queue_of(distribution: str) -> str:
    """The queue of a distribution, given as `name` or `name version`: `job.poller`."""
    name = distribution.partition(" ")[0]
    return QUEUE_PREFIX + re.sub(r"[-_.]+", "-", name).lower()
