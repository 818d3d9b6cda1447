"""The last polls of targets, read from SQL in one batch for those whose status has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy.engine import Engine

from poller.db.record import runs_of_plans, stored_readings
from poller.db.record.stored_readings import PackedPoll, Stored
from poller.domain.metrics.reading import ReadingSet, SeriesSet
from poller.domain.record import target_status
from poller.domain.record.target_status import Status

#: Texts of one poll that are kept: scrapes may ask for any part of its modules, in any order.
MOST_TEXTS = 16


@dataclass(slots=True)
class LastPoll:
    """The last poll of a target, and its texts by what scrapes show of it."""

    status_text: str
    status: Status
    stored: Stored | None
    collect_ms: int = 0  # how long the poll took; 0 is unknown
    confirmed_mono: float = 0.0  # when the board was asked whether there is a newer one
    _texts: dict[object, bytes] = field(default_factory=dict)
    _asked: dict[object, Render] = field(default_factory=dict)

    @property
    def read_ms(self) -> int | None:
        return self.stored.at_ms if self.stored else None

    def text(self, key: object, render: Render) -> bytes:
        """Return the text of this poll that `render` writes, which is kept under `key`."""
        found = self._texts.get(key)
        if found is None:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
                self._asked.clear()
            found = self._texts[key] = render(self)
        self._asked[key] = render
        return found

    def write_texts_of(self, before: LastPoll) -> None:
        """Write the texts that scrapes got of the poll before: many at once cost half as much as
        one between two scrapes. A text that nobody asked for is not written again.
        """
        for key, render in list(before._asked.items()):  # scrapes may add to it
            if self.is_on_its_way:
                self._asked[key] = render
            else:
                self._texts[key] = render(self)

    @property
    def is_on_its_way(self) -> bool:
        """Whether the readings of a good poll are still being written."""
        is_good = self.status.ok_ms and self.status.ok_ms == self.status.finished_ms
        return bool(is_good) and (self.read_ms is None or self.read_ms < self.status.run_ms)


#: Writes the text of a poll, all but its age.
Render = Callable[[LastPoll], bytes]


def load(
    engine: Engine, texts: Mapping[int, str], before: Mapping[int, LastPoll]
) -> dict[int, LastPoll]:
    """Return the polls of these statuses. Raises StoreError.

    A target whose shape is that of its poll before takes no second read.
    """
    statuses = {target_id: target_status.unpack(text) for target_id, text in texts.items()}
    packed = stored_readings.latest_packed(engine, texts)
    shapes = _shapes(engine, packed.values(), before)
    plans = {key: status.run_ms for key, status in statuses.items() if status.run_ms}
    durations_ms = runs_of_plans.durations_ms(engine, plans) if plans else {}
    found = {}
    for target_id, status in statuses.items():
        stored = _stored(packed.get(target_id), shapes)
        poll = LastPoll(texts[target_id], status, stored, durations_ms.get(target_id, 0))
        if poll.is_on_its_way:
            poll.status_text = ""  # look again at the next pass
        found[target_id] = poll
    return found


def _stored(packed: PackedPoll | None, shapes: Mapping[int, SeriesSet]) -> Stored | None:
    if packed is None or packed.shape_id not in shapes:
        return None
    readings = ReadingSet(shapes[packed.shape_id], packed.values)
    return Stored(packed.target_id, packed.at_ms, readings)


def _shapes(
    engine: Engine, polls: Iterable[PackedPoll], before: Mapping[int, LastPoll]
) -> dict[int, SeriesSet]:
    shapes: dict[int, SeriesSet] = {}
    missing: set[int] = set()
    for poll in polls:
        earlier = before.get(poll.target_id)
        shape = earlier.stored.readings.series if earlier and earlier.stored else None
        if shape is not None and shape.id == poll.shape_id:
            shapes[poll.shape_id] = shape
        else:
            missing.add(poll.shape_id)
    missing -= shapes.keys()
    if missing:
        shapes |= stored_readings.shapes(engine, missing)
    return shapes
