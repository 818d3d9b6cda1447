"""The newest stored polls of targets that this worker has not judged yet.

An interface that went down while no worker looked is noticed by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import bounded_reads
from poller.db.bounded_reads import BoundedReads
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.metrics.reading import ReadingSet, SeriesSet
from poller.observability import logs

log = logs.get(__name__)


class StoredBefore:
    """One per worker process, safe for threads."""

    def __init__(self, engine: Engine, reads: BoundedReads) -> None:
        self._engine = engine
        self._reads = reads

    def read(self, shapes: Mapping[int, SeriesSet]) -> Mapping[int, Stored]:
        """Return the newest stored poll of each target; `shapes` has their present ones.

        One statement for all, or two if a stored shape is another one. A target is missing if
        nothing is stored, or while SQL does not answer. Never raises for a store.
        """
        query = partial(_newest, self._engine, shapes)
        try:
            return self._reads.read(query, bounded_reads.PATIENCE_S, _ignore)
        except errors.StoreError as error:
            log.warning("polls_before_not_read", targets=len(shapes), error=str(error))
            return {}


def _newest(engine: Engine, present: Mapping[int, SeriesSet]) -> dict[int, Stored]:
    packed = stored_readings.latest_packed(engine, present)
    known = {shape.id: shape for shape in present.values()}
    unknown = {poll.shape_id for poll in packed.values()}.difference(known)
    if unknown:
        known.update(stored_readings.shapes(engine, unknown))
    return {
        target_id: Stored(target_id, poll.at_ms, ReadingSet(known[poll.shape_id], poll.values))
        for target_id, poll in packed.items()
        if poll.shape_id in known
    }


def _ignore(_: object) -> None:
    """Drop polls that came too late."""
