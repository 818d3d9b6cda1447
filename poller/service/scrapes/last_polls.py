"""The last polls of targets that are scraped, read in batches by one thread of a web process.

One pass a second reads the statuses of all these targets from Redis in one round trip, and from
SQL only the readings of those that were polled since. A scrape then takes neither. Without scrapes
there are no passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from poller import errors
from poller.domain.batched import batched
from poller.observability import logs
from poller.service.scrapes import last_poll_loader
from poller.service.scrapes.known_devices import CONFIRMED_S, UNUSED_S, KnownDevices
from poller.service.scrapes.last_poll_loader import LastPoll
from poller.state.board.unwell_targets import UnwellTargets

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)

PASS_S = 1.0
#: Time between passes while a scrape waits for a poll.
HASTY_PASS_S = 0.1
#: A pass that no store answers is repeated after this long.
AWAY_S = 5.0
#: The server's clock is read again after this long.
CLOCK_S = 10.0
_PAGE = 500


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
        self._is_asked = False  # since the last pass
        self._is_paused = False
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._clock_offset_ms = 0.0  # of the server's clock to the monotonic one
        self._clock_mono = float("-inf")  # when it was read

    def kept(self, target_id: int) -> LastPoll | None:
        """Return the last poll as it was known here a moment ago; None if it has to be read."""
        now_mono = time.monotonic()
        self._asked_mono[target_id] = now_mono
        self._ask()
        poll = self._polls.get(target_id)
        is_confirmed = poll is not None and now_mono < poll.confirmed_mono + CONFIRMED_S
        return poll if is_confirmed else None

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
        """Start the thread that reads, or end its pause. It also keeps the devices in step with
        the inventory.
        """
        self._ask()
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
            self._wait(passed_mono + PASS_S - time.monotonic())
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

    def _ask(self) -> None:
        self._is_asked = True
        if self._is_paused:
            self._wake.set()

    def _wait(self, left_s: float) -> None:
        """Wait for the next pass: `left_s` seconds, and then until somebody asks."""
        if self._awaited:
            self._stopping.wait(HASTY_PASS_S)
        elif left_s > 0:
            self._wake.wait(left_s)
        else:
            self._is_paused = True  # before the look at `_is_asked`: one who asks sees the one
            if not self._is_asked and not self._stopping.is_set():  # or is seen by the other
                self._wake.wait()
            self._is_paused = False
        self._wake.clear()

    def _pass(self) -> None:
        self._is_asked = False
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
        self._read_clock()
        now_mono = time.monotonic()
        texts = self._statuses.statuses(list(target_ids))
        changed: dict[int, str] = {}
        for target_id in target_ids:
            kept = self._polls.get(target_id)
            text = texts.get(target_id, "")
            if kept is not None and kept.status_text == text:
                kept.confirmed_mono = now_mono
            else:
                changed[target_id] = text
        for page in batched(changed, _PAGE):
            self._load({target_id: changed[target_id] for target_id in page}, now_mono)

    def _read_clock(self) -> None:
        if time.monotonic() >= self._clock_mono + CLOCK_S:
            now_ms = self._services.board.now_ms()
            self._clock_mono = time.monotonic()
            self._clock_offset_ms = now_ms - self._clock_mono * 1000

    def _load(self, texts: dict[int, str], now_mono: float) -> None:
        loaded = last_poll_loader.load(self._services.engine, texts, self._polls)
        for target_id, poll in loaded.items():
            poll.confirmed_mono = now_mono
            before = self._polls.get(target_id)
            self._polls[target_id] = poll
            if before is not None:
                poll.write_texts_of(before)
