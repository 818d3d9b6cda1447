"""A client of the RouterOS API on top of librouteros, with text rows and bounded memory.

Each command carries a tag, which the router repeats. A trap ends one command. Any other failure,
a cancellation too, cuts the connection, because the router may still be replying. Nothing is
logged. The caller sets the deadlines.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import ssl
from collections.abc import Sequence

from librouteros import exceptions
from librouteros.api import AsyncApi
from librouteros.protocol import AsyncApiProtocol, encode_sentence

from poller import errors
from poller.collectors.api import SessionLost
from poller.collectors.memory.answer_budget import Hold
from poller.collectors.routeros import librouteros_errors, router_connection
from poller.collectors.routeros.families.family import Row
from poller.collectors.routeros.librouteros_errors import EXPECTED, TRAPS, CommandRefused, translate
from poller.collectors.routeros.router_connection import RouterConnection, UnsolicitedData

#: Errors that mean "the router refused this command"; the session stays usable.
REFUSALS = (errors.DeviceUnsupported, errors.DeviceAuthFailed, CommandRefused)
_ENCODING = "utf-8"
#: Sentences of a reply that are taken before the event loop serves other polls.
_SENTENCES_PER_STEP = 512
#: Reply words that carry the tag of their command; other reply words are ignored.
_TAGGED_REPLIES = ("!re", "!done", "!trap")


class _Protocol(AsyncApiProtocol):  # type: ignore[misc]
    """Reads whole sentences. The library's version reads twice per word and logs passwords."""

    transport: RouterConnection

    async def writeSentence(self, cmd: str, *words: str) -> None:
        await self.transport.write(encode_sentence(cmd, *words, encoding=self.encoding))

    async def readSentence(self) -> tuple[str, Sequence[str]]:
        reply, *words = await self.transport.sentence()
        if reply == "!fatal":
            raise exceptions.FatalError(words[0] if words else "no reason given")
        return reply, words


class _Api(AsyncApi):  # type: ignore[misc]
    """Returns rows of text. The library's version would convert a name like `007` or `yes`.

    Rows of a reply that fails are dropped at once.
    """

    sentences_read = 0
    tag = ""  # of the open command
    repeats_tags = False  # set by the first reply with a tag

    async def readSentence(self) -> tuple[str, dict[str, str]]:
        reply, words = await self.protocol.readSentence()
        self.sentences_read += 1
        if not reply.startswith("!"):
            raise exceptions.ProtocolError("its answer does not begin with a reply word")

        fields: dict[str, str] = {}
        tagged = False
        for word in words:
            parts = word.split("=", 2)
            if len(parts) == 3 and not parts[0]:
                fields[parts[1]] = parts[2]
            elif word == self.tag:
                tagged = self.repeats_tags = True
            else:
                raise exceptions.ProtocolError(_word_fault(word))
        if self.repeats_tags and not tagged and reply in _TAGGED_REPLIES:
            raise exceptions.ProtocolError(
                "it does not say which command it answers, as it did before"
            )
        return reply, _trap_fields(fields) if reply == "!trap" else fields

    async def readResponse(self) -> list[dict[str, str]]:
        rows: list[dict[str, str]] = []
        traps: list[exceptions.TrapError] = []
        reply = ""
        try:
            while reply != "!done":
                reply, fields = await self.readSentence()
                if self.sentences_read % _SENTENCES_PER_STEP == 0:
                    await asyncio.sleep(0)
                if reply == "!trap":
                    traps.append(exceptions.TrapError(**fields))
                elif fields and reply in ("!re", "!done"):
                    rows.append(fields)
        except BaseException:
            rows.clear()  # this frame lives as long as the exception
            raise
        if len(traps) > 1:
            raise exceptions.MultiTrapError(*traps)
        if traps:
            raise traps[0]
        return rows


def _word_fault(word: str) -> str:
    if word.startswith(".tag="):
        return "it answers another command"
    return "it sent a word that is no attribute"


def _trap_fields(fields: dict[str, str]) -> dict[str, str]:
    """Return the two fields of a trap that the library accepts."""
    return {
        "message": fields.get("message", "no reason given"),
        "category": fields.get("category", ""),
    }


class ApiClient:
    """A connection to one router. The caller must call `close` in every case."""

    def __init__(self, name: str, connection: RouterConnection, *, over_tls: bool = False) -> None:
        self._name = name
        self._over_tls = over_tls
        self._connection = connection
        self._api = _Api(_Protocol(transport=connection, encoding=_ENCODING))
        self._tags = itertools.count(1)
        self._polls = 0
        # Counters at the begin of the current poll.
        self._sentences_before = 0
        self._received_before = 0
        self._sent_before = 0

    def begin_poll(self, hold: Hold | None = None) -> None:
        """Begin a poll. An open session that ends before its first reply raises SessionLost."""
        self._polls += 1
        self._connection.begin_poll(hold)
        self._sentences_before = self._api.sentences_read
        self._received_before = self._connection.received
        if self._polls > 1:  # the login counts as part of the first poll
            self._sent_before = self._connection.sent

    @property
    def sent(self) -> int:
        """Sentences sent in this poll; the login belongs to the first poll."""
        return self._connection.sent - self._sent_before

    async def log_in(self, username: str, password: str, hold: Hold | None = None) -> None:
        """Log in as of RouterOS 6.43, or with the challenge of older versions."""
        self._connection.begin_poll(hold)
        try:
            await self._log_in(username, password)
        except UnicodeEncodeError:  # the text of this error would show a part of the password
            raise errors.DeviceAuthFailed(
                "user name or password are no text that could be sent"
            ) from None
        except EXPECTED as error:
            raise librouteros_errors.of_login(error, self._name, self._over_tls) from None

    async def _log_in(self, username: str, password: str) -> None:
        name = f"=name={username}"
        rows = await self._run("/login", name, f"=password={password}")
        challenge = _challenge(rows)
        if challenge is None:
            return
        rows = await self._run("/login", name, f"=response={_response(challenge, password)}")
        if _challenge(rows) is not None:
            text = f"{self._name} refused the login"
            raise errors.DeviceAuthFailed(text, cause="it asks for another proof")

    async def call(self, command: str, /, *queries: str, **attributes: str) -> Sequence[Row]:
        """Run a command and return the rows of its reply; a value of `!done` (`ret`) comes last.

        Raises one of REFUSALS if the router refuses. Any other error cuts the connection.
        """
        words = [f"={name}={value}" for name, value in attributes.items()]
        try:
            return await self._run(command, *words, *queries)
        except EXPECTED as error:
            if self._had_ended(error):
                raise SessionLost(f"{self._name} has ended the session", cause=str(error)) from None
            raise translate(error, self._name, command) from None

    async def print(self, path: str, proplist: str = "", *queries: str) -> Sequence[Row]:
        """Return the rows of a menu that pass the queries, with these properties."""
        attributes = {".proplist": proplist} if proplist else {}
        return await self.call(f"{path}/print", *queries, **attributes)

    async def _run(self, command: str, *words: str) -> list[dict[str, str]]:
        self._connection.begin_command()
        self._api.tag = f".tag={next(self._tags)}"
        try:
            await self._api.protocol.writeSentence(command, *words, self._api.tag)
            rows: list[dict[str, str]] = await self._api.readResponse()
        except TRAPS:
            self._connection.end_command()
            raise
        except BaseException:
            self._connection.abort()
            raise
        self._connection.end_command()
        return rows

    def _had_ended(self, error: BaseException) -> bool:
        """Return whether an open session had ended before the first reply of this poll."""
        if self._polls < 2 or self._api.sentences_read != self._sentences_before:
            return False
        if isinstance(error, exceptions.FatalError | UnsolicitedData):
            return True
        nothing_received = self._connection.received == self._received_before
        return nothing_received and isinstance(error, exceptions.ConnectionClosed | ConnectionError)

    async def close(self, *, politely: bool) -> None:
        """End the session; after an error cut the connection without a wait."""
        if politely:
            await self._connection.close()
        else:
            self._connection.abort()

    def certificate(self) -> bytes | None:
        return self._connection.certificate()


async def connect(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str = ""
) -> ApiClient:
    """Open a connection without a login."""
    name = f"{address} port {port}"
    over_tls = tls is not None
    try:
        connection = await router_connection.open_connection(address, port, tls, server_name)
    except ConnectionRefusedError:
        raise errors.DeviceUnreachable(
            f"{name} refused the connection",
            cause="the api service is off, or an access list is in the way",
            hint=librouteros_errors.REFUSED_HINTS[over_tls],
        ) from None
    except EXPECTED as error:
        raise librouteros_errors.of_connecting(error, name, over_tls) from None
    return ApiClient(name, connection, over_tls=over_tls)


def _challenge(rows: Sequence[Row]) -> str | None:
    return rows[0].get("ret") if rows else None


def _response(challenge: str, password: str) -> str:
    """Return the proof of the password that RouterOS before 6.43 requires."""
    proof = b"\0" + password.encode() + bytes.fromhex(challenge)
    return "00" + hashlib.md5(proof, usedforsecurity=False).hexdigest()


__all__ = ["REFUSALS", "ApiClient", "CommandRefused", "connect"]
