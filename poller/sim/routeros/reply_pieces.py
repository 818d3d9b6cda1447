"""An answer is a row of pieces: bytes with the number of sentences in them, or a wait before the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from poller.sim.routeros import sentence_framing

MISSING, ARGUMENT, INTERRUPTED = "0", "1", "2"  # trap categories


class Wait(NamedTuple):
    seconds: float


Piece = tuple[bytes, int] | Wait
Answer = Iterator[Piece]


class Asked(NamedTuple):
    """A command sentence taken apart."""

    command: str
    attributes: Mapping[str, str]
    queries: Sequence[str]
    tag: str

    @property
    def path(self) -> str:
        return self.command.rpartition("/")[0]

    @property
    def verb(self) -> str:
        return self.command.rpartition("/")[2]

    @property
    def tail(self) -> bytes:
        """How every sentence of the answer ends: with the tag, if there is one."""
        return (sentence_framing.word(b".tag=" + self.tag.encode()) if self.tag else b"") + b"\0"

    def says(self, name: str) -> bool:
        """Is a flag set? `=once=` and `=once=yes` do, `=once=no` does not."""
        return self.attributes.get(name, "no") not in ("no", "false")


class Trap(Exception):
    """The router refuses. Several reasons are several sentences."""

    def __init__(self, message: str, category: str = "", *more: str) -> None:
        super().__init__(message)
        self.message = message
        self.category = category
        self.more = more


def take_apart(sentence: Sequence[bytes]) -> Asked:
    """A value may hold further equal signs; an attribute without a value may have lost its second one."""
    command, *words = [word.decode("utf-8", "replace") for word in sentence]
    pairs = (word[1:].partition("=") for word in words if word.startswith("="))
    tags = [word[5:] for word in words if word.startswith(".tag=")]
    return Asked(
        command,
        {name: value for name, _, value in pairs},
        [word[1:] for word in words if word.startswith("?")],
        tags[0] if tags else "",
    )


def say(tail: bytes, *words: str) -> tuple[bytes, int]:
    return b"".join([sentence_framing.word(word.encode()) for word in words]) + tail, 1


def row(tail: bytes, cells: Mapping[str, str]) -> tuple[bytes, int]:
    return say(tail, "!re", *(f"={name}={value}" for name, value in cells.items()))


def done(asked: Asked, returned: str | None = None) -> Answer:
    yield say(asked.tail, "!done", *([] if returned is None else [f"=ret={returned}"]))


def refused(asked: Asked, trap: Trap) -> Answer:
    category = [f"=category={trap.category}"] if trap.category else []
    yield say(asked.tail, "!trap", *category, f"=message={trap.message}")
    for message in trap.more:
        yield say(asked.tail, "!trap", f"=message={message}")
    yield say(asked.tail, "!done")


def joined(pieces: Iterable[Piece]) -> tuple[bytes, int]:
    """All there is to say, at once; for answers that end."""
    said = [piece for piece in pieces if not isinstance(piece, Wait)]
    return b"".join(data for data, _ in said), sum(count for _, count in said)
