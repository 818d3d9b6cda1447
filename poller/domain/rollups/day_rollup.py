"""Roll a target's polls up: every series by its kind, in one pass over the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Identity
from poller.domain.rollups import counter_buckets, gauge_buckets
from poller.domain.rollups.counter_samples import counter_samples
from poller.domain.rollups.rollup import Buckets, Rollup
from poller.domain.rollups.sample_columns import Group, LinedUpPolls, ShapedPolls


def roll_up(
    polls: Iterable[ShapedPolls],
    buckets: Buckets,
    interval_ms: int,
    by: Identity = Identity.IF_NAME,
    selects: Callable[[Series], bool] | None = None,
) -> Rollup | None:
    """Return the roll-up of polls, or None if they say nothing about these buckets.

    The polls are those of the buckets, the one before and the one after: a rate takes two, and may
    cross the edges. An `interval_ms` of 0 is unknown: the usual time between the polls counts.
    With `selects` only some series are rolled up.
    """
    lined_up = LinedUpPolls(polls, by, selects)
    if not len(lined_up.at_ms):
        return None
    planned_ms = interval_ms or _usual_ms(lined_up)
    rollup = Rollup(
        buckets,
        counter_buckets.roll_up(counter_samples(lined_up), buckets, planned_ms),
        gauge_buckets.roll_up_gauges(lined_up.columns(Group.GAUGE), buckets, planned_ms),
        gauge_buckets.roll_up_states(lined_up.columns(Group.STATE), buckets, planned_ms),
    )
    return None if rollup.is_empty else rollup


def _usual_ms(polls: LinedUpPolls) -> int:
    if len(polls.at_ms) < 2:
        return 0
    return int(np.median(np.diff(polls.at_ms)))
