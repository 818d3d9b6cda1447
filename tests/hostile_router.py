"""A hostile router: its replies are mutated between sentences, bytes or TLS records."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections import Counter
from dataclasses import dataclass, field
from typing import cast

from poller.sim.routeros import sentence_framing

SECRET = "fuzz-s3cret-pass"
#: Share of endless replies among the mutated ones; more would test the network.
ENDLESS = 0.0001
Dice = random.Random
Sentence = list[bytes]
#: Usual values of properties: numbers, durations, flags, rates, addresses, versions, texts.
VALUES = (
    b"0", b"7", b"1500", b"18446744073709551615", b"-52", b"24.1", b"true", b"false", b"1w2d3h4m5s",
    b"00:01:02", b"1Gbps", b"52/17", b"10.0.0.1-10.0.0.9", b"192.0.2.0/24", b"7.18.2 (stable)",
    b"ether1,ether2", b"link-ok", b"", b"ether",
    b"2026-11-16 10:00:00", b"fd00::1", b"caf\xc3\xa9", b"caf\xe9",
)  # fmt: skip
#: Values that no property has.
ODD = (
    b"9" * 60, b"9" * 400, b"9" * 5000, b"-", b"--1", b"1e999", b"nan", b"-inf", b"0x10", b"1_000",
    b" 5 ", b"5\n", b"\0", b"/", "\u0661\u0662".encode(), b"\xff\xfe",
    b"99999999999999999999w", b"1w" * 30,
    b":::", b"99:99:99.",
    b"1.2.3.4-", b"-1.2.3.4", b"0.0.0.0-255.255.255.255", b"1.2.3.4/999", b"::/0", b"9999999999",
    b"9999-99-99 99:99:99", b"0001-01-01 00:00:00",
    b"1/2/3/4", b"," * 300, b"=", b"=a=b", b"7.", b"v.v", b"x" * 4000, "\U0001f600".encode() * 50,
    b"\r\n!done\0",
    b"a\x1b[31mb", b"%s%n", b"Gbps", b"1e5Gbps", b"@", b"-@-",
)  # fmt: skip


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
    """Unexpected words: control bytes and invalid text among them."""
    odd = (
        b"!trap", b"!fatal", b"!re", b"!empty", b"!", b"=", b"==", b"=ret=00", b"=message=",
        b"=category=9", b".tag=", b"?", b"/login", dice.randbytes(dice.randrange(1, 40)),
        bytes(range(32)),
    )  # fmt: skip
    changed = [list(words) for words in said]
    for _ in range(dice.choice((1, 1, 2, 5))):
        words = dice.choice(changed)
        words.insert(dice.randrange(len(words) + 1), dice.choice(odd))
    return changed


def other_values(said: list[Sentence], dice: Dice) -> list[Sentence]:
    return [[_other_value(word, dice) for word in words] for words in said]


def _other_value(word: bytes, dice: Dice) -> bytes:
    if word[:1] != b"=" or dice.random() >= 0.3:
        return word
    parts = word.split(b"=", 2)
    return b"=".join((*parts[:2], dice.choice(ODD)))


def trapped(said: list[Sentence], dice: Dice) -> list[Sentence]:
    texts = (
        b"no such command",
        b"not enough permissions (9)",
        b"interrupted",
        SECRET.encode(),
        b"\xff\0",
        b"",
    )
    words = [
        b"!trap",
        *dice.sample([b"=message=" + dice.choice(texts), b"=category=%d" % dice.randrange(9)], 1),
    ]
    return [*dice.choices([words], k=dice.choice((1, 1, 2, 30))), *said[-1:]]


def fatal(said: list[Sentence], dice: Dice) -> list[Sentence]:
    return [
        *said[: dice.randrange(len(said))],
        [b"!fatal", *dice.choice(([], [b"session terminated"], [b"=a=b"]))],
    ]


SPEECHES = [
    dropped, doubled, shuffled, other_tag, untagged, other_words, other_words, other_values,
    other_values, trapped, fatal,
]  # fmt: skip


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
    """Replace the length of the first word, or of any later one, perhaps by an enormous one."""
    at = dice.choice((0, dice.randrange(len(data))))
    lengths = (
        b"\0", b"\x7f", b"\x80\0", b"\xbf\xff", b"\xdf\xff\xff", b"\xef\xff\xff\xff",
        b"\xf0\xff\xff\xff\xff", b"\xf8", b"\xff" * 5, b"\xe0\x10\0\0",
    )  # fmt: skip
    return data[:at] + dice.choice(lengths) + data[at + 1 :]


def noise(data: bytes, dice: Dice) -> bytes:
    return dice.randbytes(dice.choice((0, 1, 2, 3, 20, 300, 5000)))


BYTES = [truncated, flipped, flipped, overwritten, overwritten, other_length, other_length, noise]


def honest(words: Sentence, dice: Dice) -> list[Sentence]:
    """The reply of a router to any menu: a few rows with most of the requested properties."""
    tag = [word for word in words if word.startswith(b".tag=")]
    attributes = dict(
        word[1:].split(b"=", 1) for word in words if word.startswith(b"=") and word.count(b"=") > 1
    )
    if words[0] == b"/login":
        return [[b"!done", *tag]]
    if b"count-only" in attributes:
        return [[b"!done", b"=ret=%d" % dice.randrange(5000), *tag]]
    names = [name for name in attributes.get(b".proplist", b"name").split(b",") if name]
    rows = range(dice.choice((0, 1, 1, 2, 6)))
    told = [
        [b"!re", *(b"=%s=%s" % (name, plausible(name, n, dice)) for name in names), *tag]
        for n in rows
    ]
    return [*told, [b"!done", *tag]]


def plausible(name: bytes, number: int, dice: Dice) -> bytes:
    if name in (b"name", b".id", b"interface", b"mac-address"):
        return b"%s-%d" % (name, number)
    return dice.choice(VALUES)


@dataclass
class Hostile:
    """State of all connections: the dice, and the number of mutated replies."""

    dice: Dice
    tls: ssl.SSLContext
    sent: int = 0
    seen: Counter[str] = field(default_factory=Counter)

    def reply(self, words: Sentence) -> tuple[bytes, bool]:
        """Return the bytes of a reply, and whether they are wrong."""
        said = honest(words, self.dice)
        if self.dice.random() < (
            0.7 if words[0] == b"/login" else 0.4
        ):  # else a poll would not come far
            return b"".join(map(sentence_framing.encode, said)), False
        if self.dice.random() < 0.5:
            change = self.dice.choice(SPEECHES)
            self.seen[change.__name__] += 1
            return b"".join(map(sentence_framing.encode, change(said, self.dice))), True
        spoil = self.dice.choice(BYTES)
        self.seen[spoil.__name__] += 1
        return spoil(b"".join(map(sentence_framing.encode, said)), self.dice), True


class Line(asyncio.Protocol):
    """A connection to the hostile router, plain."""

    def __init__(self, hostile: Hostile) -> None:
        self._hostile = hostile
        self._decoder = sentence_framing.Decoder()
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
                self._flood(
                    dice.choice((b"\x03!re\x04=a=b\0", b"\x04=a=b", b"\0", reply or b"\0")) * 4000
                )
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
        """Send rows without an end, as fast as the other side takes them."""
        if not self._transport.is_closing():
            if self._transport.get_write_buffer_size() < 1 << 20:
                self._transport.write(piece)
            self._endless = asyncio.get_running_loop().call_later(0.001, self._flood, piece)


class TlsLine(asyncio.Protocol):
    """A connection with TLS, whose records are mutated during and after the handshake."""

    def __init__(self, hostile: Hostile) -> None:
        self._hostile = hostile
        self._decoder = sentence_framing.Decoder()
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
        except (ssl.SSLError, sentence_framing.Malformed):
            self._transport.close()
        self._flush()

    def _flush(self) -> None:
        data, dice = self._out.read(), self._hostile.dice
        if data and dice.random() < 0.3:
            self._hostile.sent += 1
            self._hostile.seen["tls"] += 1
            data = dice.choice(BYTES)(data, dice)
        self._transport.write(data)


def server_context() -> ssl.SSLContext:
    """Return a context without a certificate: anonymous Diffie-Hellman needs none, and costs
    little.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    return context
