"""SNMPv3 on the gufo engine.

The library trusts every response and hides why a request was refused, so both are checked here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import gufo.snmp
from gufo.snmp import _fast
from gufo.snmp.user import KeyType

from poller import errors
from poller.collectors.snmp.engines import gufo_engine
from poller.collectors.snmp.engines.engine_protocol import ErrorStatus, Garbled, NoReply, Retry
from poller.collectors.snmp.engines.gufo_engine import BUFFER_BYTES, GufoLink
from poller.collectors.snmp.wire import codec, usm, usm_keys, v3_message
from poller.collectors.snmp.wire.usm import UsmState
from poller.collectors.snmp.wire.v3_exchange import UsmFraming
from poller.collectors.snmp.wire.v3_message import Clock, Envelope

#: Clock corrections per request: one is usual after an idle time or a restart of the agent.
_MAX_RESYNCS = 2

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


def connect(address: str, port: int, state: UsmState, codec_only: bool = False) -> GufoUsmLink:
    """A link for SNMPv3. Opens a socket, sends nothing. `address` must be an IP literal."""
    user = _user(state) if state.engine_id else gufo.snmp.User.default()
    agent = f"{address} port {port}"
    endpoint = gufo_engine.endpoint(address, port)
    try:
        library_socket = _fast.SnmpV3ClientSocket(
            endpoint, state.engine_id, user.name, *_keys(user), 0, 0, 0, 0
        )
    except gufo_engine.EXPECTED as error:
        raise gufo_engine.translate(error, agent) from None

    link = GufoUsmLink(library_socket, agent, state, ipv6=":" in address)
    link.codec_only = codec_only
    return link


class GufoUsmLink(GufoLink):
    """An SNMPv3 link. The library keeps a clock per socket, so an idle link is worth keeping."""

    def __init__(self, library_socket: Any, agent: str, state: UsmState, *, ipv6: bool) -> None:
        clock = asyncio.get_running_loop().time
        framing = UsmFraming(state, "", clock)
        super().__init__(library_socket, agent, framing, ipv6=ipv6)
        self._state = state
        self.silence = usm.silence(state.passwords)
        #: The library's socket has no engine id. Another link may learn that of the agent before.
        self._is_undiscovered = not state.engine_id
        self._head = bytearray(BUFFER_BYTES)
        #: The report that the agent sent for the current request, or 0.
        self._report = 0

    async def handshake(self, retry: Retry) -> None:
        """Discover the agent's engine id, unless it is known. A later report corrects the clock."""
        if self._is_undiscovered:
            await retry(self._discover)

    async def _discover(self, _: int, wait_s: float) -> None:
        """Learn engine id and clock from a message that the library sends."""
        library = self._library_socket
        await super()._library_exchange(
            library.send_refresh, None, library.recv_refresh, None, wait_s
        )
        engine_id = library.get_engine_id()
        if not engine_id:
            raise self._garbled("the agent does not say its engine id")

        user = _user(self._state)
        library.set_keys(user.name, *_keys(user))
        self._is_undiscovered = False
        self._state.set_engine(engine_id)
        self._set_clock(v3_message.parse(self._head, self._length))

    async def _library_exchange(
        self,
        send: Callable[..., None],
        request: Any,
        receive: Callable[..., Any],
        context: Any,
        wait_s: float,
    ) -> Any:
        """Send one request; send it again after a report that corrected the clock."""
        deadline = self._loop.time() + wait_s
        for _ in range(_MAX_RESYNCS + 1):
            self._report = self._ignored = 0
            left_s = deadline - self._loop.time()
            try:
                return await super()._library_exchange(send, request, receive, context, left_s)
            except errors.DeviceAuthFailed:
                if self._report != v3_message.NOT_IN_TIME:
                    raise
            except NoReply:
                if self._ignored:  # the library ignores an authentic response that it cannot decode
                    self._count_undecodable()
                raise
        raise usm.refusal(v3_message.NOT_IN_TIME, self._agent)

    def _inspect(self) -> bool:
        """Pass only authentic messages of the agent to the library; read its reports here."""
        if not super()._inspect():
            return False

        state = self._state
        prefix = state.response_prefix
        digest_at = v3_message.find_digest(self._head, prefix) if prefix else 0
        if digest_at and v3_message.is_signed(self._head, self._length, digest_at, state.keys):
            return True

        try:
            accepted = self._accepts(v3_message.parse(self._head, self._length))
        except codec.Malformed as error:
            self._socket.recv(1)
            raise self._garbled(str(error)) from None
        if not accepted:
            self._socket.recv(1)
        return accepted

    def _accepts(self, envelope: Envelope) -> bool:
        """Whether the library may read a message that is not of the usual form."""
        state = self._state
        if self._is_undiscovered:  # during discovery no message can be authentic
            return True

        if envelope.data_tag == codec.SEQUENCE:
            plain, at, end = v3_message.scoped(self._head, envelope, state.keys)
            if plain[at : at + 1] == bytes((codec.REPORT,)):
                pdu = codec.read_pdu(plain, at, end)
                return self._accepts_report(v3_message.report_of(pdu), envelope)
        if envelope.flags & v3_message.LEVEL != state.keys.flags:
            return False
        if state.keys.hash and not self._is_authentic(envelope):
            return False
        self._set_clock(envelope)
        return True

    def _accepts_report(self, report: int, envelope: Envelope) -> bool:
        """True for an authentic report about the clock. Raises the refusal in any other report."""
        if report == v3_message.NOT_IN_TIME:
            self._report = report
            return self._is_authentic(envelope)
        self._socket.recv(1)
        raise usm.refusal(report, self._agent)

    def _is_authentic(self, envelope: Envelope) -> bool:
        """Whether the last datagram carries a valid digest."""
        keys = self._state.keys
        return v3_message.is_authentic(self._head, self._length, envelope, keys)

    def _set_clock(self, envelope: Envelope) -> None:
        """Store the agent's clock that a message shows."""
        clock = Clock(envelope.boots, envelope.time)
        self._state.set_clock(clock, self._loop.time())

    def _check_status(self) -> None:
        """Read the error status, which the library hides, from the response it just accepted."""
        try:
            envelope = v3_message.parse(self._head, self._length)
            pdu = v3_message.open_pdu(self._head, envelope, self._state.keys)
        except codec.Malformed as error:
            raise self._garbled(str(error)) from None
        if pdu.status:
            raise ErrorStatus(pdu.status)

    def _garbled(self, cause: str) -> Garbled:
        """The error for a datagram that is no valid message."""
        return Garbled(f"SNMP with {self._agent} failed", cause=cause)


def _user(state: UsmState) -> gufo.snmp.User:
    """The library's user. Its keys start from the master keys, which all agents share."""
    passwords = state.passwords
    if not passwords.auth:
        return gufo.snmp.User(state.username)

    auth_master = usm_keys.master_key(passwords.auth_protocol, passwords.auth)
    auth_key = _AUTH[passwords.auth_protocol](auth_master, KeyType.Master)
    priv_key = None
    if passwords.priv:
        kind = _PRIV[passwords.priv_protocol.removesuffix("C")]
        priv_master = usm_keys.master_key(passwords.auth_protocol, passwords.priv)
        priv_key = kind(priv_master, KeyType.Master)

    cisco = passwords.priv_protocol.endswith("C")
    expansion = gufo.snmp.KeyExpansion.Cisco if cisco else gufo.snmp.KeyExpansion.Blumenthal
    return gufo.snmp.User(
        state.username, auth_key=auth_key, priv_key=priv_key, key_expansion=expansion
    )


def _keys(user: gufo.snmp.User) -> tuple[int, bytes, int, bytes]:
    """Key arguments of the library's socket, in its order."""
    return (
        user.get_auth_alg(),
        user.get_auth_key(),
        user.get_priv_alg(),
        user.get_priv_key(),
    )
