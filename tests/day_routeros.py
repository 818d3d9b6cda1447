"""A compressed day of polling routers every minute: counts logins and checks every value.

    python -m tests.day_routeros --routers 100 --hours 24 [--losses 1] [--seed N]

The collector and its sessions are real, on real sockets; only the clock jumps. Every number names
its router, request and menu. Once an hour (`--losses`) the network fails each router in the middle
of a reply, or ends its idle session. The exit status is 1 if a value is wrong, a poll fails
without a loss, or a socket stays open.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import statistics
import struct
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.metrics.reading import Series
from poller.domain.scheduling.session_limits import Rules
from poller.sim import sockets
from poller.sim.routeros import sentence_framing
from tests import virtual_clock
from tests.unit.collectors.polls import open_files

INTERVAL_S, SLOW_INTERVAL_S, TIMEOUT_S = 60.0, 300.0, 10.0
HOUR_S = 3600.0
#: Losses in the middle of a reply: cut, reset, late, half late, and some dark minutes after which
#: everything is delivered. An idle session ends by a kick or a restart.
LOSSES = ("cut", "reset", "late", "half", "dark", "kick", "restart")
UNHEARD = ("kick", "restart")  # no poll may fail of these
DARK_S = 150.0
MENUS = {"/system/resource/print": 1, "/interface/print": 2}
ROWS = 4
LOGIN = Login(username="poller", password="day-s3cret")
_NO_LINGER = struct.pack("ii", 1, 0)


def stamp(router: int, request: int, menu: int, row: int) -> int:
    return ((router * 1_000_000 + request) * 10 + menu) * 10 + row


@dataclass
class Router:
    """One simulated router: numbers its requests, and fails as the test plans."""

    number: int
    address: str
    requests: int = 0
    logins: int = 0
    loss: str = ""  # what strikes it
    spared: int = 0  # answers before that
    struck: int = 0  # answers that did not come as they should
    dark_until: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)
    lines: set[Line] = field(default_factory=set)

    def answer(self, words: Sequence[bytes]) -> bytes:
        command, tag = words[0].decode(), [word for word in words if word.startswith(b".tag=")]
        if command == "/login":
            self.logins += 1
            return sentence_framing.encode([b"!done", *tag])
        self.requests += 1
        menu = MENUS.get(command)
        if menu is None:
            return sentence_framing.encode(
                [b"!trap", b"=message=no such command", *tag]
            ) + sentence_framing.encode([b"!done", *tag])
        rows = range(1 if menu == 1 else ROWS)
        told = [sentence_framing.encode([b"!re", *self._row(menu, row), *tag]) for row in rows]
        return b"".join(told) + sentence_framing.encode([b"!done", *tag])

    def _row(self, menu: int, row: int) -> list[bytes]:
        value = stamp(self.number, self.requests, menu, row)
        if menu == 1:
            return [b"=free-memory=%d" % value, b"=version=7.18", b"=uptime=1d"]
        return [b"=name=%d-%d" % (self.number, row), b"=rx-byte=%d" % value, b"=tx-byte=%d" % value]

    def next_loss(self) -> str:
        """Return the loss that strikes this reply; usually none."""
        if not self.loss or self.spared:
            self.spared = max(0, self.spared - 1)
            return ""
        loss, self.loss = self.loss, ""
        self.struck += 1
        self.seen[loss] += 1
        return loss

    def lose_session(self, loss: str) -> None:
        """End the sessions of the router, which are idle unless a poll runs at this moment."""
        self.seen[loss] += 1
        for line in list(self.lines):
            line.hang_up(reset=loss == "restart")


class Line(asyncio.Protocol):
    """One connection to a router."""

    def __init__(self, routers: dict[str, Router]) -> None:
        self._routers = routers
        self._decoder = sentence_framing.Decoder()
        self._loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._router = self._routers[transport.get_extra_info("sockname")[0]]
        self._router.lines.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._router.lines.discard(self)

    def data_received(self, data: bytes) -> None:
        for words in self._decoder.feed(data):
            answer, router = self._router.answer(words), self._router
            if self._loop.time() < router.dark_until:
                router.struck += 1
                self._loop.call_at(router.dark_until, self._write, answer)
            elif words[0] != b"/login" and (loss := router.next_loss()):
                self._spoil(loss, answer)
            else:
                self._write(answer)

    def _spoil(self, loss: str, answer: bytes) -> None:
        middle = len(answer) // 2
        if loss == "dark":
            self._router.dark_until = self._loop.time() + DARK_S
            self._loop.call_at(self._router.dark_until, self._write, answer)
        elif loss == "late":
            self._loop.call_later(TIMEOUT_S + 1, self._write, answer)
        elif loss == "half":
            self._write(answer[:middle])
            self._loop.call_later(TIMEOUT_S + 1, self._write, answer[middle:])
        else:
            self._write(answer[:middle])
            self.hang_up(reset=loss == "reset")

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def hang_up(self, *, reset: bool) -> None:
        if not reset:
            self._transport.close()
            return
        self._transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER
        )
        self._transport.abort()


@dataclass
class Report:
    polls: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    logins: list[int] = field(default_factory=list)  # of each router
    values: int = 0
    wrong: list[str] = field(default_factory=list)
    innocent: list[str] = field(
        default_factory=list
    )  # polls that failed though nothing had struck them
    sessions_left: int = 0
    sockets_left: int = 0

    @property
    def faults(self) -> list[str]:
        left = f"{self.sessions_left} connections and {self.sockets_left} files were left"
        return [
            *self.wrong,
            *self.innocent,
            *([left] if self.sessions_left or self.sockets_left > 0 else []),
        ]


class Day:
    """Polls a fleet from one worker.

    Each router has a target every minute and one every five minutes.
    """

    def __init__(
        self, count: int, hours: float, losses: int, seed: int, rules: Rules | None = None
    ) -> None:
        self.routers = [Router(n, f"127.60.{n // 250}.{n % 250 + 1}") for n in range(1, count + 1)]
        self.report = Report()
        self._dice = random.Random(seed)
        self._ends = hours * HOUR_S
        self._losses = losses
        self._collector, self._sessions = RouterOsCollector(), Sessions(rules, self._dice.random)

    async def run(self) -> Report:
        loop, before = asyncio.get_running_loop(), open_files()
        there = {router.address: router for router in self.routers}
        servers = [
            await loop.create_server(lambda: Line(there), sock=listener)
            for listener in sockets.open_tcp(0, there)
        ]
        port = servers[0].sockets[0].getsockname()[1]
        await asyncio.gather(*(self._life(router, port) for router in self.routers))
        await self._sessions.close()
        await asyncio.sleep(HOUR_S)  # late answers have come
        self.report.sessions_left = sum(len(router.lines) for router in self.routers)
        for server in servers:
            server.close()
            await server.wait_closed()
        await asyncio.sleep(1)
        self.report.sockets_left = open_files() - before
        self.report.logins = [router.logins for router in self.routers]
        for router in self.routers:
            self.report.losses += router.seen
        return self.report

    async def _life(self, router: Router, port: int) -> None:
        phase = INTERVAL_S * router.number / (len(self.routers) + 1)
        await asyncio.gather(
            self._polls(router, port, INTERVAL_S, phase, "resource,interfaces"),
            self._polls(router, port, SLOW_INTERVAL_S, phase + INTERVAL_S / 2, "interfaces"),
            self._trouble(router),
        )

    async def _trouble(self, router: Router) -> None:
        loop = asyncio.get_running_loop()
        for hour in range(int(self._ends // HOUR_S) if self._losses else 0):
            for _ in range(self._losses):
                at = hour * HOUR_S + self._dice.uniform(0, HOUR_S)
                loop.call_at(max(at, loop.time()), self._strike, router, self._dice.choice(LOSSES))

    def _strike(self, router: Router, loss: str) -> None:
        if loss in UNHEARD:
            router.lose_session(loss)
        else:
            router.loss, router.spared = loss, self._dice.randrange(2)

    async def _polls(
        self, router: Router, port: int, interval_s: float, phase_s: float, families: str
    ) -> None:
        loop = cast(virtual_clock.Loop, asyncio.get_running_loop())
        options = self._collector.Options.model_validate(
            {"port": port, "tls": False, "families": families}
        )
        memory: dict[str, object] = {}
        due = phase_s
        while due < self._ends:
            await asyncio.sleep(max(0.0, due - loop.time()))
            before, struck = router.requests, router.struck
            deadline = loop.time() + TIMEOUT_S
            poll = Poll(
                1, router.address, router.address, options, LOGIN, deadline, memory, self._sessions
            )
            with loop.waiting():
                outcome = await poll_runner.run_poll(self._collector, poll)
            self._judge(router, outcome, before, router.struck > struck)
            due += interval_s

    def _judge(self, router: Router, outcome: Outcome, before: int, struck: bool) -> None:
        report = self.report
        report.polls += 1
        report.outcomes[f"{outcome.result.value} {outcome.error_code}".strip()] += 1
        if outcome.result is not Result.OK and not struck:
            report.innocent.append(f"router {router.number}: {outcome.message}")
        requests: list[int] = []
        for series, value in zip(*_readings(outcome), strict=True):
            menu = {
                "routeros_system_free_memory": 1,
                "routeros_interface_rx_byte": 2,
                "routeros_interface_tx_byte": 2,
            }
            if series.name not in menu:
                continue
            report.values += 1
            name = dict(series.labels).get("name", f"{router.number}-0")
            number, row = divmod(int(value), 10)
            number, code = divmod(number, 10)
            owner, request = divmod(number, 1_000_000)
            requests.append(request)
            right = (owner, code, f"{owner}-{row}") == (router.number, menu[series.name], name)
            if not right or not before < request <= router.requests:
                report.wrong.append(
                    f"router {router.number}, after request {before}: "
                    f"{series.name} {name} = {value}"
                )
        if len(set(requests)) > 2:
            report.wrong.append(
                f"router {router.number}: values of {len(set(requests))} requests in one poll"
            )


def _readings(outcome: Outcome) -> tuple[Sequence[Series], Sequence[float]]:
    return (
        (outcome.readings.series.series, outcome.readings.values) if outcome.readings else ((), ())
    )


def day(routers: int, hours: float, losses: int, seed: int, rules: Rules | None = None) -> Report:
    async def run() -> Report:
        return await Day(routers, hours, losses, seed, rules).run()

    return virtual_clock.run(run())


def tell(report: Report, took_s: float) -> None:
    low, high = min(report.logins), max(report.logins)
    print(f"{report.polls} polls in {took_s:.0f} s; logins per router: {low} to {high}", end="")
    print(f", on average {statistics.fmean(report.logins):.2f}")
    for code, count in report.outcomes.most_common():
        print(f"  {count:9}  {code}")
    struck = ", ".join(f"{count} {loss}" for loss, count in sorted(report.losses.items())) or "none"
    print(f"losses: {struck}")
    print(
        f"{report.values} values checked, {len(report.wrong)} wrong; "
        f"{len(report.innocent)} polls failed unstruck; ",
        end="",
    )
    print(f"{report.sessions_left} connections and {report.sockets_left} files left")
    for fault in report.faults[:20]:
        print("FAULT", fault)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--routers", type=int, default=100)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--losses", type=int, default=1, help="per router and hour")
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args()
    sockets.raise_file_limit()
    bad = 0
    for losses in sorted({0, options.losses}):
        print(
            f"== {options.routers} routers, {options.hours:g} hours, "
            f"{losses} losses per hour and router",
            flush=True,
        )
        began = time.perf_counter()
        report = day(options.routers, options.hours, losses, options.seed)
        tell(report, time.perf_counter() - began)
        bad += len(report.faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
