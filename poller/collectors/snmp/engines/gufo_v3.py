"""SNMPv3 on the gufo engine, which trusts every answer and hides why it was refused: we check and read that here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import gufo.snmp
from gufo.snmp import _fast
from gufo.snmp.user import KeyType

from poller import errors
from poller.collectors.snmp.engines import gufo_engine
from poller.collectors.snmp.engines.engine_protocol import Ask, ErrorStatus, Garbled, NoReply
from poller.collectors.snmp.engines.gufo_engine import BUFFER_BYTES, GufoLink
from poller.collectors.snmp.wire import codec, usm, usm_keys, v3_message
from poller.collectors.snmp.wire.exchange import OwnPdus
from poller.collectors.snmp.wire.usm import Usm
from poller.collectors.snmp.wire.v3_exchange import SecuredSpeech
from poller.collectors.snmp.wire.v3_message import Clock, Envelope

#: Once is usual after an idle time or a restart of the agent; twice may be bad luck.
_RESYNCS = 2

_AUTH = {
    "MD5": gufo.snmp.Md5Key,
    "SHA": gufo.snmp.Sha1Key,
    "SHA224": gufo.snmp.Sha224Key,
    "SHA256": gufo.snmp.Sha256Key,
    "SHA384": gufo.snmp.Sha384Key,
    "SHA512": gufo.snmp.Sha512Key,
}
_PRIV = {
    "DES": gufo.snmp.DesKey,
    "AES": gufo.snmp.Aes128Key,
    "AES192": gufo.snmp.Aes192Key,
    "AES256": gufo.snmp.Aes256Key,
}


def connect(address: str, port: int, known: Usm, wary: bool = False) -> UsmLink:
    """A link for SNMPv3. Opens a socket, sends nothing. `address` must be an IP literal."""
    user = _user(known) if known.engine_id else gufo.snmp.User.default()
    agent = f"{address} port {port}"
    try:
        sock = _fast.SnmpV3ClientSocket(
            gufo_engine.endpoint(address, port),
            known.engine_id,
            user.name,
            *_keys(user),
            0,
            0,
            0,
            0,
        )
    except gufo_engine.EXPECTED as error:
        raise gufo_engine.translate(error, agent) from None
    return UsmLink(sock, agent, known, ipv6=":" in address, wary=wary)


class UsmLink(GufoLink):
    """A link that introduces itself once. The library keeps the agent's clock: the socket is worth keeping."""

    def __init__(self, sock: Any, agent: str, known: Usm, *, ipv6: bool, wary: bool) -> None:
        clock = asyncio.get_running_loop().time
        super().__init__(
            sock, agent, SecuredSpeech(known, OwnPdus(), "", clock), ipv6=ipv6, wary=wary
        )
        self._usm = known
        self._head = bytearray(BUFFER_BYTES)
        self._report = 0

    async def begin(self, ask: Ask) -> None:
        """Learn the agent's engine id, if it is not known. Its clock is told by a report when ours is off."""
        if not self._usm.engine_id:
            await ask(self._introduce)

    async def _introduce(self, _: int, wait_s: float) -> None:
        await super().exchange(self._sock.send_refresh, None, self._sock.recv_refresh, None, wait_s)
        engine_id = self._sock.get_engine_id()
        if not engine_id:
            raise Garbled(
                f"SNMP with {self._agent} failed", cause="the agent does not say its engine id"
            )
        user = _user(self._usm)
        self._sock.set_keys(user.name, *_keys(user))
        self._usm.meet(engine_id)
        met = v3_message.parse(self._head, self._length)
        self._usm.set_clock(Clock(met.boots, met.time), self._loop.time())

    async def exchange(
        self,
        send: Callable[..., None],
        request: Any,
        receive: Callable[..., Any],
        context: Any,
        wait_s: float,
    ) -> Any:
        """As any other; but an agent that says our clock is wrong has set it by saying so, and is asked again."""
        deadline = self._loop.time() + wait_s
        for _ in range(_RESYNCS + 1):
            self._report = self._ignored = 0
            try:
                return await super().exchange(
                    send, request, receive, context, deadline - self._loop.time()
                )
            except errors.DeviceAuthFailed:
                if self._report != v3_message.NOT_IN_TIME:
                    raise
            except NoReply:
                if (
                    self._ignored
                ):  # authentic, and yet no answer: the library says so of what it cannot decode
                    self._stumble()
                raise
        raise usm.refusal(v3_message.NOT_IN_TIME, self._agent)

    def _inspect(self) -> bool:
        """Only what the agent really sent reaches the library; what it reports is read here."""
        if not super()._inspect():
            return False
        known = self._usm
        digest_at = v3_message.usual_digest(self._head, known.usual) if known.usual else 0
        if digest_at and v3_message.is_signed(self._head, self._length, digest_at, known.keys):
            return True
        try:
            welcome = self._is_welcome(v3_message.parse(self._head, self._length))
        except codec.Malformed as error:
            self._tap.recv(1)
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        if not welcome:
            self._tap.recv(1)
        return welcome

    def _is_welcome(self, envelope: Envelope) -> bool:
        known = self._usm
        if not known.engine_id:  # being introduced: nothing can be authentic yet
            return True
        if envelope.data_tag == codec.SEQUENCE:
            plain, at, end = v3_message.scoped(self._head, envelope, known.keys)
            if plain[at : at + 1] == bytes((codec.REPORT,)):
                return self._hear_report(
                    v3_message.reported(codec.read_pdu(plain, at, end)), envelope
                )
        if envelope.flags & v3_message.LEVEL != known.keys.flags:
            return False
        if known.keys.hash and not v3_message.is_authentic(
            self._head, self._length, envelope, known.keys
        ):
            return False
        known.set_clock(Clock(envelope.boots, envelope.time), self._loop.time())
        return True

    def _hear_report(self, report: int, envelope: Envelope) -> bool:
        if report == v3_message.NOT_IN_TIME:
            self._report = report
            return v3_message.is_authentic(self._head, self._length, envelope, self._usm.keys)
        self._tap.recv(1)
        raise usm.refusal(report, self._agent)

    def _opened(self) -> codec.Pdu:
        """The answer that the library has just accepted, in our own reading."""
        try:
            return v3_message.open_pdu(
                self._head, v3_message.parse(self._head, self._length), self._usm.keys
            )
        except codec.Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None

    def _check_status(self) -> None:
        status = self._opened().status
        if status:
            raise ErrorStatus(status)


def _user(known: Usm) -> gufo.snmp.User:
    """The library's user, with keys made from passwords once for all agents."""
    secret = known.passwords
    if not secret.auth:
        return gufo.snmp.User(known.username)
    auth_key = _AUTH[secret.auth_protocol](
        usm_keys.master(secret.auth_protocol, secret.auth), KeyType.Master
    )
    priv_key = None
    if secret.priv:
        kind = _PRIV[secret.priv_protocol.removesuffix("C")]
        priv_key = kind(usm_keys.master(secret.auth_protocol, secret.priv), KeyType.Master)
    cisco = secret.priv_protocol.endswith("C")
    expansion = gufo.snmp.KeyExpansion.Cisco if cisco else gufo.snmp.KeyExpansion.Blumenthal
    return gufo.snmp.User(
        known.username, auth_key=auth_key, priv_key=priv_key, key_expansion=expansion
    )


def _keys(user: gufo.snmp.User) -> tuple[int, bytes, int, bytes]:
    return user.get_auth_alg(), user.get_auth_key(), user.get_priv_alg(), user.get_priv_key()
