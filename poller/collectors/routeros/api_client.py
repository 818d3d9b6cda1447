"""librouteros made safe: text stays text, nothing is logged, memory is bounded, no answer is taken for another.

Each command carries a tag, which the router repeats. A trap ends one command; anything else that goes wrong, a
cancellation too, ends the connection at once, since the router may still be answering. Deadlines are the caller's.
"""

from __future__ import annotations

import hashlib
import itertools
import ssl
from collections.abc import Sequence

from librouteros import exceptions
from librouteros.api import AsyncApi
from librouteros.protocol import AsyncApiProtocol, encode_sentence

from poller import errors
from poller.collectors.api import SessionLost
from poller.collectors.routeros import librouteros_errors
from poller.collectors.routeros.families.family import Row
from poller.collectors.routeros.librouteros_errors import EXPECTED, TRAPS, CommandRefused, translate
from poller.collectors.routeros.router_connection import Link, OutOfTurn, open_link

#: The router refused a command, and the session is as good as before.
REFUSALS = (errors.DeviceUnsupported, errors.DeviceAuthFailed, CommandRefused)
_ENCODING = "utf-8"
#: Replies that are taken for something; others are passed over.
_ANSWERS = ("!re", "!done", "!trap")


class _Protocol(AsyncApiProtocol):  # type: ignore[misc]
    """Whole sentences at a time; the library's own reads twice per word, and logs each, passwords too."""

    transport: Link

    async def writeSentence(self, cmd: str, *words: str) -> None:
        await self.transport.write(encode_sentence(cmd, *words, encoding=self.encoding))

    async def readSentence(self) -> tuple[str, Sequence[str]]:
        reply, *words = await self.transport.sentence()
        if reply == "!fatal":
            raise exceptions.FatalError(words[0] if words else "no reason given")
        return reply, words


class _Api(AsyncApi):  # type: ignore[misc]
    """Rows of text: the library's own would turn a name like `007` or `yes` into something else."""

    heard = 0  # sentences
    tag = ""  # of the command under way
    repeats_tags = False  # it did so once, and so it always will

    async def readSentence(self) -> tuple[str, dict[str, str]]:
        reply, words = await self.protocol.readSentence()
        self.heard += 1
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
                raise exceptions.ProtocolError(_strange(word))
        if self.repeats_tags and not tagged and reply in _ANSWERS:
            raise exceptions.ProtocolError(
                "it does not say which command it answers, as it did before"
            )
        if reply == "!trap":  # the library takes exactly these two
            fields = {
                "message": fields.get("message", "no reason given"),
                "category": fields.get("category", ""),
            }
        return reply, fields


def _strange(word: str) -> str:
    return (
        "it answers another command"
        if word.startswith(".tag=")
        else "it said a word that is no attribute"
    )


class Router:
    """A connection to one router. `close` must be called, whatever happened."""

    def __init__(self, name: str, link: Link, *, over_tls: bool = False) -> None:
        self._name = name
        self._over_tls = over_tls
        self._link = link
        self._api = _Api(_Protocol(transport=link, encoding=_ENCODING))
        self._tags = itertools.count(1)
        self._polls = 0
        self._mark = (0, 0)  # sentences and bytes that had come when the poll began
        self._sent_before = 0

    def begin(self) -> None:
        """A poll begins. Until something is read, an end of a kept connection is no news of the router: SessionLost."""
        self._polls += 1
        self._link.begin_poll()
        self._mark = (self._api.heard, self._link.received)
        self._sent_before = self._link.sent if self._polls > 1 else 0

    @property
    def sent(self) -> int:
        """Sentences sent in this poll; the login belongs to the first."""
        return self._link.sent - self._sent_before

    async def log_in(self, username: str, password: str) -> None:
        """The login of 6.43 and later; an older router answers with a challenge, which we then take up."""
        try:
            challenge = _challenge(
                await self._ask("/login", f"=name={username}", f"=password={password}")
            )
            if challenge is None:
                return
            proof = _response(challenge, password)
            if (
                _challenge(await self._ask("/login", f"=name={username}", f"=response={proof}"))
                is not None
            ):
                raise errors.DeviceAuthFailed(
                    f"{self._name} refused the login", cause="it asks for another proof"
                )
        except UnicodeEncodeError:  # its text would show a piece
            raise errors.DeviceAuthFailed(
                "user name or password are no text that could be sent"
            ) from None
        except EXPECTED as error:
            raise librouteros_errors.of_login(error, self._name, self._over_tls) from None

    async def call(self, command: str, /, *queries: str, **attributes: str) -> Sequence[Row]:
        """One command and all rows of its answer, as text; what `!done` carries (`ret`) is the last one.

        Raises one of REFUSALS when the router says no; after any other error the connection is cut.
        """
        words = [f"={name}={value}" for name, value in attributes.items()]
        try:
            return await self._ask(command, *words, *queries)
        except EXPECTED as error:
            if self._was_over(error):
                raise SessionLost(f"{self._name} has ended the session", cause=str(error)) from None
            raise translate(error, self._name, command) from None

    async def print(self, path: str, proplist: str = "", *queries: str) -> Sequence[Row]:
        """All rows of a menu, or those that pass the query words, with these properties."""
        return await self.call(
            f"{path}/print", *queries, **({".proplist": proplist} if proplist else {})
        )

    async def _ask(self, command: str, *words: str) -> list[dict[str, str]]:
        self._link.begin()
        self._api.tag = f".tag={next(self._tags)}"
        try:
            await self._api.protocol.writeSentence(command, *words, self._api.tag)
            rows: list[dict[str, str]] = await self._api.readResponse()
        except TRAPS:
            self._link.end()
            raise
        except BaseException:
            self._link.abort()
            raise
        self._link.end()
        return rows

    def _was_over(self, error: BaseException) -> bool:
        """Had a kept session ended before this poll asked anything? It hung up, maybe with a word, or forgot us."""
        heard, received = self._mark
        if self._polls < 2 or self._api.heard != heard:
            return False
        if isinstance(error, exceptions.FatalError | OutOfTurn):
            return True
        silent = self._link.received == received
        return silent and isinstance(error, exceptions.ConnectionClosed | ConnectionError)

    async def close(self, *, politely: bool) -> None:
        """Ends the session. After an error there is nothing to wait for: the connection is cut."""
        if politely:
            await self._link.close()
        else:
            self._link.abort()

    def certificate(self) -> bytes | None:
        return self._link.certificate()


async def connect(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str = ""
) -> Router:
    """A connection, not logged in yet."""
    name = f"{address} port {port}"
    try:
        return Router(
            name, await open_link(address, port, tls, server_name), over_tls=tls is not None
        )
    except ConnectionRefusedError:
        raise errors.DeviceUnreachable(
            f"{name} refused the connection",
            cause="the api service is off, or an access list is in the way",
        ) from None
    except EXPECTED as error:
        raise librouteros_errors.of_connecting(error, name, tls is not None) from None


def _challenge(rows: Sequence[Row]) -> str | None:
    return rows[0].get("ret") if rows else None


def _response(challenge: str, password: str) -> str:
    """The proof of the password that RouterOS before 6.43 wants."""
    digest = hashlib.md5(
        b"\0" + password.encode() + bytes.fromhex(challenge), usedforsecurity=False
    )
    return "00" + digest.hexdigest()


__all__ = ["REFUSALS", "CommandRefused", "Router", "connect"]
