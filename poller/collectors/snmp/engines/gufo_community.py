"""Links of SNMP v1 and v2c by gufo, with prepared requests where our compiled reader is there."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from gufo.snmp import _fast

from poller.collectors.snmp.engines.engine_protocol import PreparedRequest
from poller.collectors.snmp.engines.gufo_engine import EXPECTED, GufoLink, endpoint, translate
from poller.collectors.snmp.wire import codec, response_values
from poller.collectors.snmp.wire.exchange import VERSIONS, CommunityFraming, Framing
from poller.collectors.snmp.wire.value_types import Value

_FOUR_OCTETS = 1 << 30
#: Heads of messages, by community and size: few communities serve a fleet.
_CACHED_HEADS = 4_096
#: Each datagram is read from this buffer before another one is received.
_buffer = bytearray(65_535)


def connect(
    address: str, port: int, community: str, version: str, codec_only: bool = False
) -> GufoLink:
    """A link for SNMP v1 or v2c. Opens a socket, sends nothing. `address` must be an IP literal."""
    kind = _fast.SnmpV1ClientSocket if version == "1" else _fast.SnmpV2cClientSocket
    agent = f"{address} port {port}"
    try:
        library_socket = kind(endpoint(address, port), community, 0, 0, 0, 0)
    except EXPECTED as error:
        raise translate(error, agent) from None

    framing = CommunityFraming(VERSIONS[version], community.encode())
    made: GufoLink
    if version == "2c" and response_values.is_compiled():
        made = ReplayLink(library_socket, agent, framing, community, ipv6=":" in address)
    else:
        made = GufoLink(library_socket, agent, framing, ipv6=":" in address, bulk=version != "1")
    made.codec_only = codec_only
    return made


class ReplayLink(GufoLink):
    """A link of SNMP v2c that also sends prepared requests, and reads their values by itself."""

    def __init__(
        self, library_socket: Any, agent: str, framing: Framing, community: str, *, ipv6: bool
    ) -> None:
        super().__init__(library_socket, agent, framing, ipv6=ipv6)
        self._community = community.encode()
        #: Version and community, as every message begins.
        self._message_head = _message_head(self._community)

    @property
    def replays(self) -> bool:
        return not self.exact and not self.codec_only

    def send_prepared(self, request: PreparedRequest) -> int:
        request_id = _FOUR_OCTETS | random.getrandbits(30)
        pdu = request.before_id + request_id.to_bytes(4, "big") + request.after_id
        try:
            self._send(_framed(self._community, len(pdu)) + pdu)
        except OSError as error:
            raise translate(error, self._agent) from None
        return request_id

    async def receive_prepared(
        self, pending: Mapping[int, PreparedRequest], wait_s: float
    ) -> tuple[int, list[Value] | None]:
        deadline = self._loop.time() + wait_s
        while True:
            await self._wait_readable(deadline)
            try:
                size = self._socket.recv_into(_buffer)
            except BlockingIOError:  # another reader has consumed the datagram
                continue
            except OSError as error:
                raise translate(error, self._agent) from None
            self.received += size
            request_id = response_values.request_id(_buffer, size, self._message_head)
            request = pending.get(request_id)
            if request is not None:
                return request_id, _values(request, size, self._message_head)
            # else foreign, or the response to an earlier attempt


def _values(request: PreparedRequest, size: int, head: bytes) -> list[Value] | None:
    """The values of a response in the buffer; None if it is not as expected."""
    return response_values.read_values(
        _buffer, size, head, request.names, request.rows, request.root
    )


@lru_cache(_CACHED_HEADS)
def _message_head(community: bytes) -> bytes:
    """Version and community of SNMP v2c in BER."""
    return codec.integer(VERSIONS["2c"]) + codec.element(codec.OCTETS, community)


@lru_cache(_CACHED_HEADS)
def _framed(community: bytes, pdu_size: int) -> bytes:
    """The octets of a message before a PDU of this size."""
    head = _message_head(community)
    return codec.element(codec.SEQUENCE, head + bytes(pdu_size))[:-pdu_size]
