"""The last polls of targets that are scraped, read in batches by one thread of a web process.

One pass a second reads the statuses of all these targets from Redis in one round trip, and from
SQL only the readings of those that were polled since. A scrape then takes neither.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.record import runs_of_plans, stored_readings
from poller.db.record.stored_readings import Stored
from poller.domain.batched import batched
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.observability import logs
from poller.service.scrapes.known_devices import UNUSED_S, KnownDevices
from poller.state.board.unwell_targets import UnwellTargets

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)

PASS_S = 1.0
#: Time between passes while a scrape waits for a poll.
HASTY_PASS_S = 0.1
#: A pass that no store answers is repeated after this long.
AWAY_S = 5.0
_PAGE = 500


@dataclass(slots=True)
class LastPoll:
    """The last poll of a target. `rendered` keeps its texts, by what a scrape shows of it."""

    status_text: str
    status: Status
    stored: Stored | None
    collect_ms: int = 0  # how long the poll took; 0 is unknown
    rendered: dict[object, bytes] = field(default_factory=dict)

    @property
    def read_ms(self) -> int | None:
        return self.stored.at_ms if self.stored else None


class LastPolls:
    """The last polls by target. Safe for threads; the thread starts at the first scrape."""

    def __init__(self, services: Services, devices: KnownDevices) -> None:
        self._services = services
        self._devices = devices
        self._statuses = UnwellTargets(services.board)
        self._lock = threading.Lock()  # one read at a time
        self._polls: dict[int, LastPoll] = {}
        self._asked_mono: dict[int, float] = {}
        self._awaited: dict[int, float] = {}  # until when a scrape waits for a poll
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._clock_offset_ms = 0.0  # of the server's clock to the monotonic one

    def kept(self, target_id: int) -> LastPoll | None:
        """Return the last poll as far as it is known here; None before its first read."""
        self._asked_mono[target_id] = time.monotonic()
        return self._polls.get(target_id)

    def now_ms(self) -> int:
        """The server's clock, which the instants of polls are from."""
        return int(time.monotonic() * 1000 + self._clock_offset_ms)

    def read(self, target_ids: Sequence[int]) -> None:
        """Read the last polls of these targets now. Raises StoreError."""
        with self._lock:
            self._update(target_ids)

    def hasten(self, target_id: int, until_mono: float) -> None:
        """Look at a target more often until an instant: a scrape waits for its poll."""
        self._awaited[target_id] = max(self._awaited.get(target_id, 0.0), until_mono)
        self._wake.set()

    def close(self) -> None:
        """End the thread that reads."""
        self._stopping.set()
        self._wake.set()

    def start(self) -> None:
        """Start the thread that reads; it also keeps the devices in step with the inventory."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(
                        target=self._run, name="scrape-reader", daemon=True
                    )
                    self._thread.start()

    def _run(self) -> None:
        passed_mono = 0.0
        while not self._stopping.is_set():
            left_s = passed_mono + PASS_S - time.monotonic()
            if self._awaited:
                self._stopping.wait(HASTY_PASS_S)
            elif left_s > 0:
                self._wake.wait(left_s)
            self._wake.clear()
            try:
                if time.monotonic() >= passed_mono + PASS_S:
                    passed_mono = time.monotonic()
                    self._pass()
                else:
                    self._read_awaited()
            except (errors.StoreError, errors.SchemaMismatch) as error:
                log.warning("last_polls_not_read", error=str(error))
                self._polls.clear()  # a poll that nobody confirms is no last poll
                self._stopping.wait(AWAY_S)
            except Exception:  # door: the end of this thread; it must not die
                log.exception("scrape_reader_broke")
                self._stopping.wait(AWAY_S)

    def _pass(self) -> None:
        self._devices.refresh()
        with self._lock:
            self._update(self._in_use())

    def _read_awaited(self) -> None:
        """Read only what scrapes wait for: a look at all targets costs more."""
        now_mono = time.monotonic()
        for target_id, until_mono in list(self._awaited.items()):
            if until_mono < now_mono:
                del self._awaited[target_id]
        with self._lock:
            self._update(list(self._awaited))

    def _in_use(self) -> list[int]:
        oldest_mono = time.monotonic() - UNUSED_S
        for target_id, asked_mono in list(self._asked_mono.items()):
            if asked_mono < oldest_mono:
                del self._asked_mono[target_id]
                self._polls.pop(target_id, None)
        return list(self._asked_mono)

    def _update(self, target_ids: Collection[int]) -> None:
        if not target_ids:
            return
        now_ms = self._services.board.now_ms()
        self._clock_offset_ms = now_ms - time.monotonic() * 1000
        texts = self._statuses.statuses(list(target_ids))
        changed = {
            target_id: text
            for target_id in target_ids
            if (text := texts.get(target_id, "")) != self._known_text(target_id)
        }
        for page in batched(changed, _PAGE):
            self._load({target_id: changed[target_id] for target_id in page})

    def _known_text(self, target_id: int) -> str | None:
        """The status that the kept poll belongs to; None if its readings are not here yet."""
        kept = self._polls.get(target_id)
        return kept.status_text if kept is not None else None

    def _load(self, texts: dict[int, str]) -> None:
        statuses = {target_id: target_status.unpack(text) for target_id, text in texts.items()}
        engine = self._services.engine
        stored = stored_readings.latest(engine, texts)
        plans = {key: status.run_ms for key, status in statuses.items() if status.run_ms}
        runs = runs_of_plans.find(engine, plans) if plans else {}
        for target_id, status in statuses.items():
            run = runs.get(target_id)
            collect_ms = run.collect_ms if run else 0
            poll = LastPoll(texts[target_id], status, stored.get(target_id), collect_ms)
            if _is_on_its_way(poll):
                poll.status_text = ""  # look again at the next pass
            self._polls[target_id] = poll


def _is_on_its_way(poll: LastPoll) -> bool:
    """Whether the readings of a good poll are still being written."""
    is_good = poll.status.ok_ms and poll.status.ok_ms == poll.status.finished_ms
    return bool(is_good) and (poll.read_ms is None or poll.read_ms < poll.status.run_ms)
