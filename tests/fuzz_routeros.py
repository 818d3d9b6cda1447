"""A hostile router sends mutated API replies until `--replies` are sent.

    python -m tests.fuzz_routeros --replies 500000 [--seed N]

The clock jumps over idle time. Prints outcomes by code, the longest poll, the longest block of the
event loop, and memory. The exit status is 1 if a poll crashes, exceeds its deadline, blocks other
polls, reveals a secret (in its outcome, a log of any level, or stderr), leaves a file open, or if
memory grows.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import functools
import gc
import io
import logging
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from poller.collectors import poll_runner
from poller.collectors.api import Poll
from poller.collectors.credentials import Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome
from tests import virtual_clock
from tests.fuzz_snmp import rss_mb
from tests.hostile_router import SECRET, Dice, Hostile, Line, TlsLine, server_context
from tests.unit.collectors.polls import open_files

LOGIN = Login(username="fuzz", password=SECRET)
CODES = {"", "timeout", "protocol_error", "auth_failed", "unsupported", "unreachable"}
DEADLINE_S = 0.6
#: What one answer may cost the other polls of a worker, in seconds of CPU.
STEP_S = 1.0
#: Allowed growth of memory after the first fifth, when all caches are full. The process keeps a
#: part of the memory of the largest reply.
GROWTH, GROWTH_MB = 1.03, 32.0
SIDE_BY_SIDE = 16
TLS_SHARE = 0.05


@dataclass
class Report:
    polls: int = 0
    replies: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    step_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    memory: list[tuple[int, float]] = field(
        default_factory=list
    )  # blocks that Python holds, and MB of the process
    files: tuple[int, int] = (0, 0)
    logged: int = 0


class _Ear(logging.Handler):
    """A log handler for every logger and level."""

    def __init__(self, report: Report) -> None:
        super().__init__(logging.DEBUG)
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        self._report.logged += 1
        text = logging.Formatter("%(name)s %(message)s").format(record)
        if SECRET in text:
            self._report.faults.append("a secret was logged")
        if record.levelno >= logging.ERROR:
            self._report.faults.append(f"logged: {text.splitlines()[0]}")


class _Watched(io.TextIOBase):
    """Records what is written to stderr."""

    def __init__(self, stream: Any, report: Report) -> None:
        self._stream, self._report = stream, report

    def write(self, text: str) -> int:
        if SECRET in text:
            self._report.faults.append("a secret was written to stderr")
        return int(self._stream.write(text))


@contextlib.contextmanager
def listening(report: Report) -> Iterator[None]:
    root, ear, stderr = logging.getLogger(), _Ear(report), sys.stderr
    level, library = root.level, logging.getLogger("librouteros")
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    library.setLevel(logging.DEBUG)
    sys.stderr = cast(Any, _Watched(stderr, report))
    try:
        yield
    finally:
        sys.stderr = stderr
        root.removeHandler(ear)
        root.setLevel(level)


async def _polls(
    hostile: Hostile, ports: tuple[int, int], replies: int, dice: Dice, report: Report
) -> None:
    """Poll one device after the other, with sessions that are kept as in a worker."""
    loop, collector, sessions = asyncio.get_running_loop(), RouterOsCollector(), Sessions()
    memory: dict[str, Any] = {}
    while hostile.sent < replies:
        chosen: dict[str, object] = {
            "families": dice.sample(list(FAMILIES), dice.choice((1, 2, 2, 3)))
        }
        chosen |= {"address_lists": ["fuzz"]} if "address_lists" in chosen["families"] else {}
        over_tls = dice.random() < TLS_SHARE
        chosen |= (
            {"port": ports[1], "tls": True, "insecure": True}
            if over_tls
            else {"port": ports[0], "tls": False}
        )
        options = collector.Options.model_validate(chosen)
        started = loop.time()
        memory = {} if dice.random() < 0.3 else memory
        poll = Poll(
            1, "device", "127.0.0.1", options, LOGIN, started + DEADLINE_S, memory, sessions
        )
        outcome = await poll_runner.run_poll(collector, poll)
        judge(outcome, loop.time() - started, report)
    await sessions.close()


def settled_mb() -> float:
    """Return the memory of the process after garbage collection."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)
    return rss_mb()


def judge(outcome: Outcome, took_s: float, report: Report) -> None:
    code, message = outcome.error_code, outcome.message
    report.polls += 1
    report.codes[f"{outcome.result.value} {code}".strip()] += 1
    report.slowest_s = max(report.slowest_s, took_s)
    if code not in CODES:
        report.faults.append(f"{code}: {message}")
    if took_s > DEADLINE_S:
        report.faults.append(f"a poll took {took_s:.1f} s")
    if SECRET in message:
        report.faults.append("a secret was said")


async def fuzz(replies: int, seed: int, say: Callable[[str], None] = lambda text: None) -> Report:
    """Run the router and a collector that polls it, in one process on one loop."""
    report, loop = Report(), cast(virtual_clock.Loop, asyncio.get_running_loop())
    hostile = Hostile(Dice(seed), server_context())
    loop.set_exception_handler(
        lambda _, context: report.faults.append(f"unhandled: {context.get('message')}")
    )
    servers = [
        await loop.create_server(functools.partial(kind, hostile), "127.0.0.1", 0)
        for kind in (Line, TlsLine)
    ]
    ports = (servers[0].sockets[0].getsockname()[1], servers[1].sockets[0].getsockname()[1])
    before, steps = open_files(), min(10, max(3, replies // 20_000))
    with listening(report):
        for step in range(1, steps + 1):
            dices = [Dice((seed + step) * 100 + i) for i in range(SIDE_BY_SIDE)]
            await asyncio.gather(
                *(_polls(hostile, ports, replies * step // steps, dice, report) for dice in dices)
            )
            mb = settled_mb()  # first: it collects garbage
            report.memory.append((sys.getallocatedblocks(), mb))
            held = f"{report.memory[-1][1]:.1f} MB in {report.memory[-1][0]} blocks"
            say(
                f"{hostile.sent} replies, {report.polls} polls, {held}, "
                f"slowest {report.slowest_s:.2f} s"
            )
        await asyncio.sleep(0.3)
    report.files = (before, open_files())
    for server in servers:
        server.close()
    report.replies, report.seen, report.step_s = hostile.sent, hostile.seen, loop.slowest_step_s
    if report.step_s > STEP_S:
        report.faults.append(f"the loop was held up for {report.step_s:.1f} s")
    if report.files[1] > before:
        report.faults.append(f"{report.files[1] - before} files were left open")
    (blocks, mb), (blocks_then, mb_then) = report.memory[-1], report.memory[1]
    if blocks > blocks_then * GROWTH or mb > mb_then + GROWTH_MB:
        report.faults.append(
            f"memory grew by {mb - mb_then:.1f} MB and {blocks - blocks_then} blocks"
        )
    return report


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replies", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args()
    began = time.perf_counter()
    report = virtual_clock.run(
        fuzz(options.replies, options.seed, functools.partial(print, flush=True))
    )
    took_s = time.perf_counter() - began
    print(f"{report.replies} mutated replies, {report.polls} polls in {took_s:.0f} s; ", end="")
    print(
        f"slowest {report.slowest_s:.2f} s, loop held up for {report.step_s:.2f} s at most; ",
        end="",
    )
    print(f"files {report.files}; {report.logged} lines logged")
    for code, count in report.codes.most_common():
        print(f"  {count:9}  {code}")
    print(", ".join(f"{count} {name}" for name, count in report.seen.most_common()))
    for fault in sorted(set(report.faults))[:20]:
        print("FAULT", fault)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
