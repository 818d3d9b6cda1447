"""Stored samples of targets, streamed: some polls of one target at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from poller.db.history import polls_of_span
from poller.db.inventory.filter_conditions import SelectedTarget
from poller.db.record.stored_readings import Stored
from poller.domain.series.exported_polls import ExportedPolls

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Polls of a target that are in memory at a time, and their samples, about.
POLLS = 240
SAMPLES = 100_000
#: Polls of a target that are read first, while it is not known how many samples one has.
FIRST_POLLS = 8


def polls(
    services: Services,
    selected: Sequence[SelectedTarget],
    start_ms: int,
    end_ms: int,
    metric: str = "",
) -> Iterator[ExportedPolls]:
    """Yield the polls of targets in [start, end), each target's oldest first. Raises StoreError.

    `metric` is a part of the names of the metrics.
    """
    for target in selected:
        begin_ms = start_ms
        count = FIRST_POLLS
        while True:
            found = polls_of_span.between(services.engine, target.id, begin_ms, end_ms, count)
            for _, same in groupby(found, key=_shape_id):
                chosen = _chosen(target, list(same), metric)
                if chosen.series:
                    yield chosen
            if len(found) < count:
                break
            begin_ms = found[-1].at_ms + 1
            count = max(1, min(POLLS, SAMPLES // max(1, len(found[-1].readings.values))))


def _shape_id(stored: Stored) -> int:
    return stored.readings.series.id


def _chosen(target: SelectedTarget, same: Sequence[Stored], metric: str) -> ExportedPolls:
    series = same[0].readings.series.series
    places = [place for place, each in enumerate(series) if metric in each.name]
    is_whole = len(places) == len(series)
    rows = [
        each.readings.values if is_whole else [each.readings.values[place] for place in places]
        for each in same
    ]
    return ExportedPolls(
        target.device,
        target.name,
        [series[place] for place in places],
        [each.at_ms for each in same],
        rows,
    )
