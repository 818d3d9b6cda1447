"""The pieces of an answer: bytes with their number of sentences, or a wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from poller.sim.routeros import sentence_framing

MISSING, ARGUMENT, INTERRUPTED = "0", "1", "2"  # trap categories


class Wait(NamedTuple):
    """A delay before the next piece."""

    seconds: float


Piece = tuple[bytes, int] | Wait
Answer = Iterator[Piece]


class Request(NamedTuple):
    """A parsed command sentence."""

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
        """The end of every sentence of the answer: the tag, if there is one, and the empty word."""
        return (sentence_framing.word(b".tag=" + self.tag.encode()) if self.tag else b"") + b"\0"

    def is_set(self, name: str) -> bool:
        """Return whether a flag is set: `=once=` and `=once=yes` set it, `=once=no` does not."""
        return self.attributes.get(name, "no") not in ("no", "false")


class Trap(Exception):
    """A refusal by the router. Each message of `more` is a sentence of its own."""

    def __init__(self, message: str, category: str = "", *more: str) -> None:
        super().__init__(message)
        self.message = message
        self.category = category
        self.more = more


def parse(raw_words: Sequence[bytes]) -> Request:
    """Parse a command sentence. A value may contain `=`, and `=name` is an empty value."""
    command, *words = [word.decode("utf-8", "replace") for word in raw_words]
    pairs = (word[1:].partition("=") for word in words if word.startswith("="))
    tags = [word[5:] for word in words if word.startswith(".tag=")]
    return Request(
        command,
        {name: value for name, _, value in pairs},
        [word[1:] for word in words if word.startswith("?")],
        tags[0] if tags else "",
    )


def sentence(tail: bytes, *words: str) -> tuple[bytes, int]:
    return b"".join([sentence_framing.word(word.encode()) for word in words]) + tail, 1


def row(tail: bytes, cells: Mapping[str, str]) -> tuple[bytes, int]:
    return sentence(tail, "!re", *(f"={name}={value}" for name, value in cells.items()))


def done(request: Request, returned: str | None = None) -> Answer:
    yield sentence(request.tail, "!done", *([] if returned is None else [f"=ret={returned}"]))


def refused(request: Request, trap: Trap) -> Answer:
    category = [f"=category={trap.category}"] if trap.category else []
    yield sentence(request.tail, "!trap", *category, f"=message={trap.message}")
    for message in trap.more:
        yield sentence(request.tail, "!trap", f"=message={message}")
    yield sentence(request.tail, "!done")


def joined(pieces: Iterable[Piece]) -> tuple[bytes, int]:
    """Join the pieces of an answer that ends, without its waits."""
    sent = [piece for piece in pieces if not isinstance(piece, Wait)]
    return b"".join(data for data, _ in sent), sum(count for _, count in sent)
