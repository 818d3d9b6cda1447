"""The listener: datagrams in, polls out, and a line when something changes. It outlives every store that is away."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from poller import errors
from poller.bootstrap import Services
from poller.domain.scheduling.trap_pace import TrapPace
from poller.observability import logs
from poller.traps.sender_table import Directory
from poller.traps.trap_polls import Asker
from poller.traps.trap_socket import Datagram, Intake
from poller.traps.trap_verifier import Judge
from poller.workers.batch.credential_cache import CredentialCache

log = logs.get(__name__)

INVENTORY_S = 5.0
ASK_S = 0.1
REPORT_S = 10.0
LINE_S = 60.0
#: What waits to be judged; a signature takes about a millisecond, so this is a few seconds of work.
MOST_WAITING = 4096
PER_SOURCE = 50
BURST = 100


class Listener:
    """One socket, one loop. `run` ends when it is cancelled."""

    def __init__(self, services: Services, sock: socket.socket) -> None:
        settings = services.settings
        self.count: Counter[str] = Counter()
        self.directory = Directory(services.engine)
        self._services = services
        self._sock = sock
        self._told: Counter[str] = Counter()  # what is in Redis already
        self._away: set[str] = set()  # stores that are, and of which we said so
        self._secrets = CredentialCache(services, services.settings.secret_cache_s)
        self._judge = Judge(self._secrets.get)
        self._asker = Asker(
            services, TrapPace(round(settings.trap_gap_s * 1000), settings.trap_polls_per_s, BURST)
        )
        self._intake: Intake | None = None

    @property
    def waiting(self) -> int:
        """Devices that will be polled for what they announced, and were not yet."""
        return self._asker.waiting

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self._intake = intake = Intake(
            self._sock, lambda: self.directory.by_address, self.count, MOST_WAITING, PER_SOURCE
        )
        await self._guarded("database", self._refresh)
        loop.add_reader(self._sock.fileno(), intake.on_readable)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._judging(intake))
                tasks.create_task(self._every(INVENTORY_S, "database", self._refresh))
                tasks.create_task(self._every(ASK_S, "Redis", self._ask))
                tasks.create_task(self._every(REPORT_S, "Redis", self._report))
                tasks.create_task(self._lines())
        finally:
            loop.remove_reader(self._sock.fileno())
            self.directory.close()

    async def _judging(self, intake: Intake) -> None:
        while True:
            datagram = await intake.waiting.get()
            try:
                await self._judged(datagram)
            except Exception:
                log.exception(
                    "trap_broke", address=datagram.address
                )  # one datagram must not end the listener
            await asyncio.sleep(0)  # decoding takes long: let the socket be read

    async def _judged(self, datagram: Datagram) -> None:
        senders = self.directory.by_address.get(datagram.address, ())
        try:
            verdict = await self._judge.judge(datagram, senders, time.monotonic())
        except errors.StoreError as error:
            self.count["undecided"] += 1
            self._miss("database", error)
            return
        self.count[verdict.result] += 1
        if verdict.answer is not None:
            self._reply(verdict.answer, datagram)
        if verdict.result == "accepted" and verdict.notice is not None:
            fresh = self._asker.note(verdict.senders, verdict.notice, _now_ms())
            self.count["coalesced"] += not fresh

    def _reply(self, answer: bytes, datagram: Datagram) -> None:
        try:
            self._sock.sendto(answer, datagram.origin)
        except OSError:
            return  # who wants an answer asks again

    async def _refresh(self) -> bool:
        if await asyncio.to_thread(self.directory.refresh):
            self._judge.keys.forget()  # a password may have changed
        return True

    async def _ask(self) -> bool:
        asked = await self._asker.ask(_now_ms())
        self.count["polls"] += asked
        return asked > 0

    async def _report(self) -> bool:
        """What was counted since the last time, into the totals of all listeners."""
        more = Counter(self.count)
        more.subtract(self._told)
        grown = {name: number for name, number in more.items() if number}
        if grown:
            totals = {f"traps_{name}": number for name, number in grown.items()}
            await asyncio.to_thread(self._services.board.count, totals)
        self._told.update(grown)
        return bool(grown)

    async def _lines(self) -> None:
        """One line a minute, if anything came."""
        before = Counter(self.count)
        while True:
            await asyncio.sleep(LINE_S)
            now = Counter(self.count)
            more = {name: now[name] - before[name] for name in now if now[name] != before[name]}
            if more:
                log.info("traps_received", **more, devices_waiting=self._asker.waiting)
            before = now

    async def _every(self, seconds: float, store: str, do: Callable[[], Awaitable[bool]]) -> None:
        while True:
            await asyncio.sleep(seconds if store not in self._away else max(seconds, 1.0))
            await self._guarded(store, do)

    async def _guarded(self, store: str, do: Callable[[], Awaitable[bool]]) -> None:
        """`do` says whether the store answered; one that is away is said once, and once more when it is back."""
        try:
            answered = await do()
        except errors.StoreError as error:
            self._miss(store, error)
            return
        if answered and store in self._away:
            self._away.discard(store)
            log.info("trap_store_back", store=store)

    def _miss(self, store: str, error: errors.StoreError) -> None:
        if store not in self._away:
            log.warning("trap_store_away", store=store, error=str(error))
        self._away.add(store)

    async def finish(self) -> None:
        """The last counts, when we stop."""
        await self._guarded("Redis", self._report)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
