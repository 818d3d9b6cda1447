"""The trap listener: datagrams in, polls out. It keeps running while a store is down."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from poller import errors
from poller.bootstrap import Services
from poller.domain.scheduling.trap_pace import TrapPace
from poller.observability import logs
from poller.traps.sender_table import SenderTable
from poller.traps.trap_polls import TrapPolls
from poller.traps.trap_socket import Datagram, TrapReceiver
from poller.traps.trap_verifier import TrapVerifier
from poller.workers.batch.credential_cache import CredentialCache

log = logs.get(__name__)

#: Periods of the listener's tasks.
INVENTORY_S = 5.0
DEMAND_S = 0.1
REPORT_S = 10.0
LOG_S = 60.0
#: Retries of a store that is down are at least this far apart.
RETRY_S = 1.0
#: Maximum datagrams that wait for verification; a signature takes about a millisecond.
MAX_QUEUED = 4096
#: Maximum datagrams per second of one address.
PER_SOURCE = 50
#: Maximum polls demanded at once.
BURST = 100


class Listener:
    """One socket on one event loop. `run` ends when it is cancelled."""

    def __init__(self, services: Services, sock: socket.socket) -> None:
        settings = services.settings
        self.counters: Counter[str] = Counter()
        self.senders = SenderTable(services.engine)
        self._services = services
        self._socket = sock
        #: Counts that Redis has already.
        self._reported: Counter[str] = Counter()
        #: Names of the stores that are down.
        self._down: set[str] = set()
        credentials = CredentialCache(services)
        self._verifier = TrapVerifier(credentials.get)
        gap_ms = round(settings.trap_gap_s * 1000)
        self._polls = TrapPolls(services, TrapPace(gap_ms, settings.trap_polls_per_s, BURST))

    @property
    def waiting(self) -> int:
        """Number of devices that wait for a poll because of a notification."""
        return self._polls.waiting

    async def run(self) -> None:
        """Listen until cancelled."""
        loop = asyncio.get_running_loop()
        receiver = TrapReceiver(
            self._socket, self._known_addresses, self.counters, MAX_QUEUED, PER_SOURCE
        )
        await self._guarded("database", self._refresh)

        loop.add_reader(self._socket.fileno(), receiver.on_readable)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._handle_datagrams(receiver))
                tasks.create_task(self._every(INVENTORY_S, "database", self._refresh))
                tasks.create_task(self._every(DEMAND_S, "Redis", self._demand))
                tasks.create_task(self._every(REPORT_S, "Redis", self._report))
                tasks.create_task(self._log_counts())
        finally:
            loop.remove_reader(self._socket.fileno())
            self.senders.close()

    async def finish(self) -> None:
        """Write the last counts after `run` was cancelled."""
        await self._guarded("Redis", self._report)

    def _known_addresses(self) -> Mapping[str, object]:
        """The current table of senders."""
        return self.senders.by_address

    async def _handle_datagrams(self, receiver: TrapReceiver) -> None:
        """Handle the queue one datagram at a time."""
        while True:
            datagram = await receiver.queue.get()
            try:
                await self._handle(datagram)
            except Exception:  # door to pysnmp: one datagram must not end the listener
                log.exception("trap_broke", address=datagram.address)
            await asyncio.sleep(0)  # decoding is slow: read the socket in between

    async def _handle(self, datagram: Datagram) -> None:
        """Verify one datagram; count it, acknowledge it, and plan the polls that it causes."""
        senders = self.senders.by_address.get(datagram.address, ())
        try:
            verdict = await self._verifier.verify(datagram, senders, time.monotonic())
        except errors.StoreError as error:
            self.counters["undecided"] += 1
            self._mark_down("database", error)
            return

        self.counters[verdict.result] += 1
        if verdict.acknowledgement is not None:
            self._reply(verdict.acknowledgement, datagram)
        if verdict.result == "accepted" and verdict.notification is not None:
            added = self._polls.add(verdict.senders, verdict.notification, _now_ms())
            self.counters["coalesced"] += not added

    def _reply(self, acknowledgement: bytes, datagram: Datagram) -> None:
        """Acknowledge an inform."""
        try:
            self._socket.sendto(acknowledgement, datagram.origin)
        except OSError:
            return  # the sender repeats its inform

    async def _refresh(self) -> bool:
        """Refresh the table of senders."""
        await asyncio.to_thread(self.senders.refresh)
        return True

    async def _demand(self) -> bool:
        """Demand the polls that are due."""
        devices = await self._polls.demand_due(_now_ms())
        self.counters["polls"] += devices
        return devices > 0

    async def _report(self) -> bool:
        """Add the counts since the last report to the totals of all listeners."""
        grown = _growth(self.counters, self._reported)
        if grown:
            totals = {f"traps_{name}": count for name, count in grown.items()}
            await asyncio.to_thread(self._services.board.count, totals)
        self._reported.update(grown)
        return bool(grown)

    async def _log_counts(self) -> None:
        """Log one line a minute, if a datagram came."""
        before = Counter(self.counters)
        while True:
            await asyncio.sleep(LOG_S)
            grown = _growth(self.counters, before)
            if grown:
                log.info("traps_received", **grown, devices_waiting=self.waiting)
            before.update(grown)

    async def _every(
        self, period_s: float, store: str, task: Callable[[], Awaitable[bool]]
    ) -> None:
        """Run a task forever, less often while its store is down."""
        while True:
            down = store in self._down
            await asyncio.sleep(max(period_s, RETRY_S) if down else period_s)
            await self._guarded(store, task)

    async def _guarded(self, store: str, task: Callable[[], Awaitable[bool]]) -> None:
        """Run a task, which returns whether the store answered. Log an outage's start and end."""
        try:
            answered = await task()
        except errors.StoreError as error:
            self._mark_down(store, error)
            return
        if answered and store in self._down:
            self._down.discard(store)
            log.info("trap_store_back", store=store)

    def _mark_down(self, store: str, error: errors.StoreError) -> None:
        """Log the start of an outage."""
        if store not in self._down:
            log.warning("trap_store_away", store=store, error=str(error))
        self._down.add(store)


def _growth(counters: Counter[str], before: Counter[str]) -> dict[str, int]:
    """Counters that have changed, by their difference."""
    grown: dict[str, int] = {}
    for name, count in counters.items():
        if count != before[name]:
            grown[name] = count - before[name]
    return grown


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
