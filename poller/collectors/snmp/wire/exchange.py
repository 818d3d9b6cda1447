"""One request and its answer in our own codec, on a connected socket: exact, for whatever size, checked by id.

`Speech` says how a PDU is wrapped and unwrapped; this module sends, waits and tells answers from rubbish.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol

from poller.collectors.snmp.engines.engine_protocol import ErrorStatus, Page, Row
from poller.collectors.snmp.wire import codec
from poller.collectors.snmp.wire.codec import Found, Missing, Pdu

#: As messages say them.
VERSIONS = {"1": 0, "2c": 1}
_LARGEST = 65_535
#: Once is usual after an idle time or a restart of the agent; twice may be bad luck.
_RESYNCS = 2
_dice = random.SystemRandom()


class Question(NamedTuple):
    """`first` and `second`: zero, or non-repeaters and max-repetitions of a GETBULK."""

    kind: int
    oids: Sequence[str]
    first: int = 0
    second: int = 0


class Reported(Exception):
    """The agent sent a report instead of an answer: `which` of `secured.REPORTS`, and whether asking again helps."""

    def __init__(self, which: int, again: bool) -> None:
        super().__init__(which, again)
        self.which = which
        self.again = again


class Speech(Protocol):
    """A version of the protocol, with whatever authenticates it."""

    def say(self, question: Question, request_id: int) -> bytes: ...

    def hear(self, data: bytes) -> Pdu | None:
        """The answer in a datagram, None if it is not for us. Raises Malformed, Reported."""
        ...


class Pdus(Protocol):
    """Who writes and reads what is inside a message."""

    def write(self, question: Question, request_id: int) -> bytes: ...

    def read(self, data: bytes) -> Pdu:
        """Raises Malformed."""
        ...


class OwnPdus:
    """Our own codec does."""

    def write(self, question: Question, request_id: int) -> bytes:
        return codec.request(
            question.kind, request_id, question.first, question.second, question.oids
        )

    def read(self, data: bytes) -> Pdu:
        return codec.read_pdu(data, 0, len(data))


class CommunitySpeech:
    """Versions 1 and 2c. Never printed: it holds the community."""

    def __init__(self, version: int, community: bytes, pdus: Pdus) -> None:
        self._version = version
        self._community = community
        self._pdus = pdus

    def say(self, question: Question, request_id: int) -> bytes:
        return codec.message(self._version, self._community, self._pdus.write(question, request_id))

    def hear(self, data: bytes) -> Pdu | None:
        version, community, at = codec.open_message(data)
        return (
            self._pdus.read(data[at:])
            if version == self._version and community == self._community
            else None
        )


UntilReadable = Callable[[], Awaitable[None]]


async def ask(
    speech: Speech, question: Question, tap: socket.socket, until_readable: UntilReadable
) -> list[Found]:
    """The rows of the answer. Raises Malformed, Reported, ErrorStatus, OSError and what the waiting raises."""
    for more in range(_RESYNCS, -1, -1):
        try:
            return await _ask(speech, question, tap, until_readable)
        except Reported as report:  # an agent that says our clock is wrong has set it by saying so
            if not report.again or not more:
                raise
    raise AssertionError("unreachable")


async def _ask(
    speech: Speech, question: Question, tap: socket.socket, until_readable: UntilReadable
) -> list[Found]:
    request_id = _dice.getrandbits(31)
    _send(tap, speech.say(question, request_id))
    while True:
        await until_readable()
        try:
            pdu = speech.hear(tap.recv(_LARGEST))
        except BlockingIOError:  # nothing there: the loop told of the datagram before
            continue
        if pdu is None or pdu.request_id != request_id or pdu.kind != codec.RESPONSE:
            continue  # somebody else's answer, or one to an earlier try
        if pdu.status:
            raise ErrorStatus(pdu.status)
        return pdu.rows


class Introduces(Protocol):
    """A speech whose agent must be met first."""

    def introduction(self) -> bytes: ...

    def meet(self, data: bytes) -> bool:
        """Is this the answer to our introduction? Raises Malformed."""
        ...


async def introduce(speech: Introduces, tap: socket.socket, until_readable: UntilReadable) -> None:
    _send(tap, speech.introduction())
    while True:
        await until_readable()
        try:
            if speech.meet(tap.recv(_LARGEST)):
                return
        except BlockingIOError:
            continue


def _send(tap: socket.socket, data: bytes) -> None:
    try:
        tap.send(data)
    except BlockingIOError:  # a full send buffer is as good as a lost packet: the guard tries again
        return


def walk_question(cursor: str, repetitions: int, *, bulk: bool) -> Question:
    return (
        Question(codec.GET_BULK, (cursor,), 0, repetitions)
        if bulk
        else Question(codec.GET_NEXT, (cursor,))
    )


def page_of(found: Sequence[Found], root: str) -> Page:
    """The rows within the subtree, and whether something showed that there are no more."""
    beneath = root + "."
    rows: list[Row] = []
    for name, value in found:
        if value is Missing.END_OF_VIEW or not (name.startswith(beneath) or name == root):
            return Page(rows, ended=True)
        if value is not None and not isinstance(value, Missing):
            rows.append((name, value))
    return Page(rows, ended=not rows)


def names_of(found: Sequence[Found]) -> list[str]:
    """What follows, by name; empty where nothing does."""
    return ["" if value is Missing.END_OF_VIEW else name for name, value in found]


def there(found: Sequence[Found]) -> list[Row]:
    """The rows that have a value."""
    return [
        (name, value)
        for name, value in found
        if value is not None and not isinstance(value, Missing)
    ]
