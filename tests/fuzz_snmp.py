"""A hostile SNMP agent sends `--datagrams` mutated responses; every outcome must be one of ours.

    python -m tests.fuzz_snmp --datagrams 1000000 [--seed N]

Prints outcomes by code, the longest poll, and memory during the run. Exits with status 1 if a poll
crashed, exceeded its deadline or showed a secret, or if memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.wire.usm_keys import Passwords
from poller.domain.failures.outcome import Outcome
from poller.sim.snmp.usm_agent import Authority, SecuredRequest
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.polls import open_files, polled
from tests.unit.collectors.snmp_agent import GET, GET_BULK, Request, element, integer, octets

SECRET = "public-s3cret"
COMMUNITY = Community.from_text(SECRET)
USER = SnmpV3.from_fields({"username": "fuzz", "auth_password": SECRET, "priv_password": SECRET})
PLAIN_USER = SnmpV3.from_fields({"username": "plain"})
USERS = {b"fuzz": Passwords("SHA", SECRET.encode(), "AES", SECRET.encode()), b"plain": Passwords()}
CODES = {"", "timeout", "protocol_error", "auth_failed", "unsupported", "unreachable"}
DEADLINE_S = 3.0
#: A poll ends shortly before its deadline; this much after it is a hang.
LATE_S = 1.0
#: Memory growth allowed after the first tenth of the run, for caches that fill up.
GROWTH_MB = 12.0
#: Share of polls without memory: otherwise the library would see nothing after its first panic.
FORGET_SHARE = 0.1
PARALLEL_POLLS = 96
IF_X = "1.3.6.1.2.1.31.1.1.1"
ROWS: list[tuple[str, bytes]] = [
    ("1.3.6.1.2.1.1.3.0", integer(4200, 0x43)),
    ("1.3.6.1.2.1.2.1.0", integer(2)),
    *[
        (f"1.3.6.1.2.1.2.2.1.{column}.{row}", integer(column * row))
        for column in (1, 4, 8, 10)
        for row in (1, 2)
    ],
    *[(f"{IF_X}.1.{row}", octets(b"eth%d" % row)) for row in (1, 2)],
    *[(f"{IF_X}.6.{row}", integer(2**40 + row, 0x46)) for row in (1, 2)],
    (f"{IF_X}.19.1", element(0x40, b"\x7f\x00\x00\x01")),
    (f"{IF_X}.19.2", element(0x44, b"\x9fx\x04\x3f\xc0\x00\x00")),
    ("1.3.6.1.2.1.99.1.0", integer(1)),
]
Dice = random.Random


def key(oid: str) -> list[int]:
    return [int(part) for part in oid.split(".")]


def honest(request: Request) -> list[tuple[str, bytes]]:
    if request.kind == GET:
        there = dict(ROWS)
        return [(oid, there.get(oid, b"\x80\0")) for oid in request.oids]
    after = [row for row in ROWS if key(row[0]) > key(request.oids[0])]
    count = request.repetitions if request.kind == GET_BULK else 1
    return after[:count] or [(request.oids[0], b"\x82\0")]


def truncated(data: bytes, dice: Dice) -> bytes:
    return data[: dice.randrange(len(data) + 1)]


def flipped(data: bytes, dice: Dice) -> bytes:
    spoiled = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 3, 8))):
        spoiled[dice.randrange(len(spoiled))] ^= 1 << dice.randrange(8)
    return bytes(spoiled)


def overwritten(data: bytes, dice: Dice) -> bytes:
    spoiled = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3))):
        spoiled[dice.randrange(len(spoiled))] = dice.randrange(256)
    return bytes(spoiled)


def inserted(data: bytes, dice: Dice) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + dice.randbytes(dice.randrange(1, 5)) + data[at:]


def huge_length(data: bytes, dice: Dice) -> bytes:
    """Make one element claim an enormous length."""
    at = dice.randrange(len(data))
    size = dice.choice((1, 2, 3, 4, 8, 30, 127))
    return data[: at + 1] + bytes((0x80 | size,)) + b"\xff" * min(size, 8) + data[at + 1 :]


def noise(data: bytes, dice: Dice) -> bytes:
    return dice.randbytes(dice.choice((0, 1, 2, 3, 20, 300, 5000)))


def long(data: bytes, dice: Dice) -> bytes:
    return data + bytes(dice.randrange(4000, 60_000))


def whole(data: bytes, dice: Dice) -> bytes:
    """Return the datagram unchanged."""
    return data


def fitting(mutate: Callable[[bytes, Dice], bytes]) -> Callable[[bytes, Dice], bytes]:
    """Mutate the inside of a message whose outermost length is right."""

    def mutated(data: bytes, dice: Dice) -> bytes:
        start = 2 + (data[1] & 0x7F if data[1] & 0x80 else 0)
        return element(0x30, mutate(data[start:], dice))

    return mutated


MUTATIONS: list[Callable[[bytes, Dice], bytes]] = [
    truncated, flipped, overwritten, inserted, huge_length, noise, long, whole, whole,
    *map(fitting, (truncated, flipped, flipped, overwritten, overwritten, inserted, huge_length)),
]  # fmt: skip


def lie(request: Request, dice: Dice) -> tuple[list[tuple[str, bytes]], bytes, int]:
    """Rows, request id and error status: well-formed, and sometimes wrong."""
    rows, request_id, status = honest(request), request.request_id, 0
    choice = dice.random()
    if choice < 0.04:
        request_id = dice.randbytes(len(request_id))
    elif choice < 0.08:
        status = dice.choice((*range(1, 19), 255))
    elif choice < 0.12:  # a loop
        rows = [row for row in ROWS if row[0].startswith(IF_X)][:2]
    elif choice < 0.16:  # backwards
        rows = rows[::-1]
    elif choice < 0.24:  # other types than these columns have
        kinds = (
            0x02,
            0x04,
            0x05,
            0x06,
            0x40,
            0x41,
            0x42,
            0x43,
            0x44,
            0x46,
            0x80,
            0x81,
            0x82,
            0x9F,
            0x24,
        )
        rows = [
            (oid, element(dice.choice(kinds), dice.randbytes(dice.randrange(12))))
            for oid, _ in rows
        ]
    return rows, request_id, status


@dataclass
class Agent(asyncio.DatagramProtocol):
    """Responds to v1, v2c and v3, each response mutated; counts the datagrams that it sends."""

    dice: Dice
    sent: int = 0
    authority: Authority = field(
        default_factory=lambda: Authority(
            b"\x80\x00\x1f\x88\x04fuzz", USERS, started=time.time() - 1000
        )
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # uvloop's is none by descent

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        for answer in self._answers(data):
            for _ in range(self.dice.choice((0, 0, 0, 0, 0, 0, 1, 1, 2, 5, 20))):
                self._send(self.dice.choice(MUTATIONS)(answer, self.dice), address)
            if self.dice.random() < 0.8:  # else a walk would not come far
                self._send(answer, address)

    def _send(self, answer: bytes, address: tuple[str, int]) -> None:
        self.sent += 1
        self._transport.sendto(answer[:65_000], address)

    def _answers(self, data: bytes) -> Sequence[bytes]:
        if data[4:5] == b"\x03" or b"\x02\x01\x03\x30" in data[:12]:
            return self._answers_v3(data)
        request = snmp_agent.parse(data)
        rows, request_id, status = lie(request, self.dice)
        named = [(snmp_agent.oid(oid), value) for oid, value in rows]
        return [snmp_agent.response(request.community, request_id, named, status, request.version)]

    def _answers_v3(self, data: bytes) -> Sequence[bytes]:
        if self.dice.random() < 0.01:
            self.authority.reboot(time.time() - self.dice.randrange(10_000))
        asked = self.authority.receive(data, time.time())
        if not isinstance(asked, SecuredRequest):
            return [asked] if asked else []
        rows, request_id, status = lie(snmp_agent.parse_pdu(asked.pdu), self.dice)
        pdu = snmp_agent.response_pdu(request_id, rows, status)
        if self.dice.random() < 0.1:  # authentic, and wrong inside
            pdu = self.dice.choice(MUTATIONS)(pdu, self.dice)[:40_000]
        return [self.authority.seal(pdu, asked, time.time())]


def rss_mb() -> float:
    """Return the resident memory; /proc/self/statm would only be an estimate."""
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Rss:")) * 1024 / 1e6


@dataclass
class Report:
    polls: int = 0
    datagrams: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    memory_mb: list[tuple[int, float]] = field(default_factory=list)
    files: tuple[int, int] = (0, 0)


async def poll_until(agent: Agent, port: int, datagrams: int, seed: int, report: Report) -> None:
    """Parallel polls with all versions and engines through one collector, as in a worker."""
    collector = SnmpCollector()
    await asyncio.gather(
        *(
            _polls(collector, agent, port, datagrams, Dice(seed * 100 + i), report)
            for i in range(PARALLEL_POLLS)
        )
    )
    await collector.close()


async def _polls(
    collector: SnmpCollector, agent: Agent, port: int, datagrams: int, dice: Dice, report: Report
) -> None:
    ways: list[tuple[Credential, str, str]] = [
        (COMMUNITY, "2c", "gufo"), (COMMUNITY, "2c", "gufo"), (COMMUNITY, "2c", "gufo"),
        (COMMUNITY, "1", "gufo"),
        (USER, "2c", "gufo"), (USER, "2c", "gufo"), (PLAIN_USER, "2c", "gufo"),
        (COMMUNITY, "2c", "exact"), (USER, "2c", "exact"),
    ]  # fmt: skip
    memories: list[dict[str, object]] = [{} for _ in ways]
    while agent.sent < datagrams:
        which = dice.randrange(len(ways))
        credential, version, engine = ways[which]
        if dice.random() < FORGET_SHARE:
            memories[which] = {}
        options = {"port": port, "timeout": 0.2, "retries": 1, "version": version, "engine": engine}
        started = time.monotonic()
        drained = await polled(
            collector,
            "127.0.0.1",
            credential,
            memories[which],
            DEADLINE_S,
            modules="if_mib",
            **options,
        )
        judge(drained.outcome, time.monotonic() - started, report)


def judge(outcome: Outcome, took_s: float, report: Report) -> None:
    code, message = outcome.error_code, outcome.message
    report.polls += 1
    report.codes[f"{outcome.result.value} {code}".strip()] += 1
    report.slowest_s = max(report.slowest_s, took_s)
    if code not in CODES:
        report.faults.append(f"{code}: {message}")
    if took_s > DEADLINE_S + LATE_S:
        report.faults.append(f"a poll took {took_s:.1f} s")
    if SECRET in message:
        report.faults.append("a secret was said")


async def fuzz(datagrams: int, seed: int, say: Callable[[str], None] = lambda text: None) -> Report:
    """Run the agent and a collector that polls it, in one process on one loop."""
    os.environ["RUST_BACKTRACE"] = "0"  # a panic with one loads 50 MB of symbols
    report, agent = Report(), Agent(Dice(seed))
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: agent, ("127.0.0.1", 0)
    )
    port = transport.get_extra_info("sockname")[1]
    before = open_files()
    steps = 10
    for step in range(1, steps + 1):
        await poll_until(agent, port, datagrams * step // steps, seed + step, report)
        report.memory_mb.append((agent.sent, rss_mb()))
        say(
            f"{agent.sent} datagrams, {report.polls} polls, {rss_mb():.1f} MB, "
            f"slowest {report.slowest_s:.2f} s"
        )
    transport.close()
    report.datagrams, report.files = agent.sent, (before, open_files())
    if report.files[1] > before:
        report.faults.append(f"{report.files[1] - before} files were left open")
    grown = report.memory_mb[-1][1] - report.memory_mb[0][1]
    if grown > GROWTH_MB:
        report.faults.append(f"memory grew by {grown:.1f} MB")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datagrams", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args()
    report = asyncio.run(
        fuzz(options.datagrams, options.seed, functools.partial(print, flush=True))
    )
    print(
        f"{report.datagrams} datagrams, {report.polls} polls; "
        f"slowest {report.slowest_s:.2f} s; files {report.files}"
    )
    for code, count in report.codes.most_common():
        print(f"  {count:9}  {code}")
    for fault in sorted(set(report.faults))[:20]:
        print("FAULT", fault)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
