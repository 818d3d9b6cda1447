"""Shapes by id: those that this process has in use anyway, and those that the sql sink stored."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from weakref import WeakValueDictionary

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import bounded_reads
from poller.db.bounded_reads import BoundedReads
from poller.db.record import stored_readings
from poller.domain.metrics.reading import SeriesSet
from poller.observability import logs

log = logs.get(__name__)


class KnownShapes:
    """One per worker process, safe for threads. It keeps no shape alive."""

    def __init__(self, engine: Engine, reads: BoundedReads) -> None:
        self._engine = engine
        self._reads = reads
        self._in_use: WeakValueDictionary[int, SeriesSet] = WeakValueDictionary()

    def note(self, shape: SeriesSet) -> None:
        """Find this shape by its id while any part of the process uses it."""
        self._in_use[shape.id] = shape

    def find(self, ids: Collection[int]) -> dict[int, SeriesSet]:
        """Return the shapes that are known; at most one query. Never raises for a store."""
        found = {}
        for shape_id in ids:
            shape = self._in_use.get(shape_id)
            if shape is not None:
                found[shape_id] = shape

        unknown = [shape_id for shape_id in ids if shape_id not in found]
        if unknown:
            found.update(self._read(unknown))
        return found

    def _read(self, ids: Collection[int]) -> dict[int, SeriesSet]:
        query = partial(stored_readings.shapes, self._engine, ids)
        try:
            return self._reads.read(query, bounded_reads.PATIENCE_S, _ignore)
        except errors.StoreError as error:
            log.warning("shapes_not_read", shapes=len(ids), error=str(error))
            return {}


def _ignore(_: object) -> None:
    """Drop shapes that came too late."""
