"""A hostile router sends mutated API replies until `--replies` are sent; no outcome may be anything but ours.

    python -m tests.fuzz_routeros --replies 500000 [--seed N]

Prints outcomes by code, the longest poll, and memory as it goes. Ends with status 1 if a poll crashed, took longer than
its deadline, said a secret (in its outcome, to a log at any level, to stderr), left a file open, or if memory grew.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import io
import logging
import random
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from poller.collectors import drain
from poller.collectors.api import Poll
from poller.collectors.credentials import Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.sessions import Sessions
from poller.domain.outcome import Outcome
from poller.sim.routeros import sentences
from tests.fuzz_snmp import rss_mb
from tests.unit.collectors.polls import open_files

SECRET = "fuzz-s3cret-pass"
LOGIN = Login(username="fuzz", password=SECRET)
CODES = {"", "timeout", "protocol_error", "auth_failed", "unsupported", "unreachable"}
DEADLINE_S = 0.6
#: A poll is handed over a little before its deadline; this much after it is a hang.
LATE_S = 1.0
#: What Python may take more after the first fifth: caches that fill up, then nothing.
GROWTH_MB = 16.0
SIDE_BY_SIDE = 64
TLS_SHARE = 0.05
#: Of the answers that are mutated; more of them would be a test of the network.
ENDLESS = 0.0004
MENUS = "resource,interfaces"
Dice = random.Random
Sentence = list[bytes]


# What goes wrong between sentences


def dropped(said: list[Sentence], dice: Dice) -> list[Sentence]:
    at = dice.randrange(len(said))
    return said[:at] + said[at + 1 :]


def doubled(said: list[Sentence], dice: Dice) -> list[Sentence]:
    at = dice.randrange(len(said))
    return [*said[: at + 1], *said[at:]]


def shuffled(said: list[Sentence], dice: Dice) -> list[Sentence]:
    return dice.sample(said, len(said))


def other_tag(said: list[Sentence], dice: Dice) -> list[Sentence]:
    tag = b".tag=%d" % dice.randrange(40)
    return [[tag if word.startswith(b".tag=") else word for word in words] for words in said]


def untagged(said: list[Sentence], dice: Dice) -> list[Sentence]:
    return [[word for word in words if not word.startswith(b".tag=")] for words in said]


def other_words(said: list[Sentence], dice: Dice) -> list[Sentence]:
    """Words nobody expects there, control bytes and no text at all among them."""
    odd = (b"!trap", b"!fatal", b"!re", b"!empty", b"!", b"=", b"==", b"=ret=00", b"=message=", b"=category=9",
           b".tag=", b"?", b"/login", dice.randbytes(dice.randrange(1, 40)), bytes(range(32)))  # fmt: skip
    changed = [list(words) for words in said]
    for _ in range(dice.choice((1, 1, 2, 5))):
        words = dice.choice(changed)
        words.insert(dice.randrange(len(words) + 1), dice.choice(odd))
    return changed


def trapped(said: list[Sentence], dice: Dice) -> list[Sentence]:
    texts = (b"no such command", b"not enough permissions (9)", b"interrupted", SECRET.encode(), b"\xff\0", b"")
    words = [b"!trap", *dice.sample([b"=message=" + dice.choice(texts), b"=category=%d" % dice.randrange(9)], 1)]
    return [*dice.choices([words], k=dice.choice((1, 1, 2, 30))), *said[-1:]]


def fatal(said: list[Sentence], dice: Dice) -> list[Sentence]:
    return [*said[: dice.randrange(len(said))], [b"!fatal", *dice.choice(([], [b"session terminated"], [b"=a=b"]))]]


SPEECHES = [dropped, doubled, shuffled, other_tag, untagged, other_words, other_words, trapped, fatal]


# What goes wrong between bytes


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


def other_length(data: bytes, dice: Dice) -> bytes:
    """The length of the first word, or of what follows anywhere, is another one, and may be enormous."""
    at = dice.choice((0, dice.randrange(len(data))))
    lengths = (b"\0", b"\x7f", b"\x80\0", b"\xbf\xff", b"\xdf\xff\xff", b"\xef\xff\xff\xff", b"\xf0\xff\xff\xff\xff",
               b"\xf8", b"\xff" * 5, b"\xe0\x10\0\0")  # fmt: skip
    return data[:at] + dice.choice(lengths) + data[at + 1 :]


def noise(data: bytes, dice: Dice) -> bytes:
    return dice.randbytes(dice.choice((0, 1, 2, 3, 20, 300, 5000)))


BYTES = [truncated, flipped, flipped, overwritten, overwritten, other_length, other_length, noise]


def honest(words: Sentence) -> list[Sentence]:
    tag = [word for word in words if word.startswith(b".tag=")]
    rows: list[Sentence] = []
    if words[0] == b"/system/resource/print":
        rows = [[b"!re", b"=uptime=1w2d3h", b"=version=7.18.2 (stable)", b"=free-memory=123456", b"=cpu-load=5"]]
    elif words[0] == b"/interface/print":
        rows = [
            [b"!re", b"=.id=*%X" % n, b"=name=ether%d" % n, b"=rx-byte=%d" % 2**n, b"=running=true"] for n in range(6)
        ]
    return [[*row, *tag] for row in (*rows, [b"!done"])]


@dataclass
class Hostile:
    """What all its connections share: dice, and how many mutated replies were sent."""

    dice: Dice
    tls: ssl.SSLContext
    sent: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def reply(self, words: Sentence) -> tuple[bytes, bool]:
        """Bytes, and whether they are wrong."""
        said = honest(words)
        if self.dice.random() < (0.7 if words[0] == b"/login" else 0.4):  # else a poll would not come far
            return b"".join(map(sentences.encode, said)), False
        if self.dice.random() < 0.5:
            change = self.dice.choice(SPEECHES)
            self.seen[change.__name__] += 1
            return b"".join(map(sentences.encode, change(said, self.dice))), True
        spoil = self.dice.choice(BYTES)
        self.seen[spoil.__name__] += 1
        return spoil(b"".join(map(sentences.encode, said)), self.dice), True


class Line(asyncio.Protocol):
    """A connection to the hostile router, plain."""

    def __init__(self, hostile: Hostile) -> None:
        self._hostile = hostile
        self._decoder = sentences.Decoder()
        self._endless: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._endless:
            self._endless.cancel()

    def data_received(self, data: bytes) -> None:
        dice = self._hostile.dice
        for words in self._decoder.feed(data):
            reply, wrong = self._hostile.reply(words)
            self._hostile.sent += wrong
            if wrong and dice.random() < ENDLESS:
                self._hostile.seen["endless"] += 1
                self._flood(dice.choice((b"\x03!re\x04=a=b\0", b"\x04=a=b", b"\0", reply or b"\0")) * 4000)
            self._say(reply, dice)
            if wrong and dice.random() < 0.3:
                self._end(dice)

    def _say(self, reply: bytes, dice: Dice) -> None:
        if dice.random() < 0.1:  # in two pieces
            middle = dice.randrange(len(reply) + 1)
            self._transport.write(reply[:middle])
            asyncio.get_running_loop().call_later(0.001, self._transport.write, reply[middle:])
        else:
            self._transport.write(reply)

    def _end(self, dice: Dice) -> None:
        if dice.random() < 0.5:
            self._transport.close()
        else:
            self._transport.abort()

    def _flood(self, piece: bytes) -> None:
        """Rows without an end, as fast as the other side takes them."""
        if not self._transport.is_closing():
            if self._transport.get_write_buffer_size() < 1 << 20:
                self._transport.write(piece)
            self._endless = asyncio.get_running_loop().call_later(0.001, self._flood, piece)


class TlsLine(asyncio.Protocol):
    """The same behind TLS, whose records are mutated, too: handshakes, and what comes after them."""

    def __init__(self, hostile: Hostile) -> None:
        self._hostile = hostile
        self._decoder = sentences.Decoder()
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = hostile.tls.wrap_bio(self._in, self._out, server_side=True)
        self._shaken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._in.write(data)
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            for words in self._decoder.feed(self._tls.read(65_536)):
                reply, wrong = self._hostile.reply(words)
                self._hostile.sent += wrong
                if reply:
                    self._tls.write(reply)
        except ssl.SSLWantReadError:
            pass
        except (ssl.SSLError, sentences.Malformed):
            self._transport.close()
        self._flush()

    def _flush(self) -> None:
        data, dice = self._out.read(), self._hostile.dice
        if data and dice.random() < 0.3:
            self._hostile.sent += 1
            self._hostile.seen["tls"] += 1
            data = dice.choice(BYTES)(data, dice)
        self._transport.write(data)


# Polling it


@dataclass
class Report:
    polls: int = 0
    replies: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    faults: list[str] = field(default_factory=list)
    memory_mb: list[tuple[int, float]] = field(default_factory=list)
    files: tuple[int, int] = (0, 0)
    logged: int = 0


class _Ear(logging.Handler):
    """Hears every log at every level."""

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
    """What is written to stderr."""

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


async def _polls(hostile: Hostile, ports: tuple[int, int], replies: int, dice: Dice, report: Report) -> None:
    """One device after the other, with sessions that are kept as a worker keeps them."""
    collector, sessions = RouterOsCollector(), Sessions()
    plain = collector.Options.model_validate({"port": ports[0], "families": MENUS})
    over_tls = collector.Options.model_validate({"port": ports[1], "families": MENUS, "tls": True, "insecure": True})
    while hostile.sent < replies:
        options = over_tls if dice.random() < TLS_SHARE else plain
        started = time.monotonic()
        deadline = asyncio.get_running_loop().time() + DEADLINE_S
        poll = Poll(1, "device", "127.0.0.1", options, LOGIN, deadline, {}, sessions)
        outcome = await drain.drain(collector, poll)
        judge(outcome, time.monotonic() - started, report)
    await sessions.close()


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


def server_context() -> ssl.SSLContext:
    """Without a certificate: anonymous Diffie-Hellman needs none, and costs little."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    return context


async def fuzz(replies: int, seed: int, say: Callable[[str], None] = lambda text: None) -> Report:
    """One process, one loop: the router, and a collector that polls it."""
    report, loop = Report(), asyncio.get_running_loop()
    hostile = Hostile(Dice(seed), server_context())
    loop.set_exception_handler(lambda _, context: report.faults.append(f"unhandled: {context.get('message')}"))
    servers = [await loop.create_server(functools.partial(kind, hostile), "127.0.0.1", 0) for kind in (Line, TlsLine)]
    ports = (servers[0].sockets[0].getsockname()[1], servers[1].sockets[0].getsockname()[1])
    before, steps = open_files(), 10
    with listening(report):
        for step in range(1, steps + 1):
            dices = [Dice((seed + step) * 100 + i) for i in range(SIDE_BY_SIDE)]
            await asyncio.gather(*(_polls(hostile, ports, replies * step // steps, dice, report) for dice in dices))
            gc.collect()
            report.memory_mb.append((hostile.sent, rss_mb()))
            say(f"{hostile.sent} replies, {report.polls} polls, {rss_mb():.1f} MB, slowest {report.slowest_s:.2f} s")
        await asyncio.sleep(0.3)
    report.files = (before, open_files())
    for server in servers:
        server.close()
    report.replies, report.seen = hostile.sent, hostile.seen
    if report.files[1] > before:
        report.faults.append(f"{report.files[1] - before} files were left open")
    grown = report.memory_mb[-1][1] - report.memory_mb[1][1]
    if grown > GROWTH_MB:
        report.faults.append(f"memory grew by {grown:.1f} MB")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=20261116)
    options = parser.parse_args()
    began = time.perf_counter()
    report = asyncio.run(fuzz(options.replies, options.seed, functools.partial(print, flush=True)))
    took_s = time.perf_counter() - began
    print(f"{report.replies} mutated replies, {report.polls} polls in {took_s:.0f} s; ", end="")
    print(f"slowest {report.slowest_s:.2f} s; files {report.files}; {report.logged} lines logged")
    for code, count in report.codes.most_common():
        print(f"  {count:9}  {code}")
    print(", ".join(f"{count} {name}" for name, count in report.seen.most_common()))
    for fault in sorted(set(report.faults))[:20]:
        print("FAULT", fault)
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
