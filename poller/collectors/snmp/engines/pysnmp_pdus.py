"""The thorough engine: pysnmp writes and reads the PDUs, on a socket of ours; contexts, exact types.

Fifteen times the cost of gufo, so it is for what gufo cannot do. Why not pysnmp's own engine: decision 0019.
`_TRANSLATION` is the only place that knows the library's exceptions.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

import pyasn1.error
import pyasn1.type.error
import pysnmp.error
from pyasn1.codec.ber import decoder, encoder
from pysnmp.proto import rfc1902, rfc1905
from pysnmp.proto.api import v2c

from poller import errors
from poller.collectors.snmp.engines import gufo_engine
from poller.collectors.snmp.engines.engine_protocol import Ask, Garbled, Page, Row
from poller.collectors.snmp.wire import codec, exchange, usm, value_types
from poller.collectors.snmp.wire.codec import Found, Malformed, Missing, Pdu
from poller.collectors.snmp.wire.exchange import CommunitySpeech, Question, Reported, Speech
from poller.collectors.snmp.wire.udp import Listener
from poller.collectors.snmp.wire.usm import Usm
from poller.collectors.snmp.wire.v3_exchange import SecuredSpeech
from poller.collectors.snmp.wire.value_types import Value

_GET_AT_ONCE = 20
#: Longer PDUs are read by our own codec: pysnmp would hold up everybody else for a second with one of 50 kB.
_LONGEST = 4096
#: pysnmp's request classes, by what they are on the wire.
_REQUESTS = {
    codec.GET: v2c.GetRequestPDU,
    codec.GET_NEXT: v2c.GetNextRequestPDU,
    codec.GET_BULK: v2c.GetBulkRequestPDU,
}
_MISSING: dict[type, Missing] = {
    rfc1905.NoSuchObject: Missing.OBJECT,
    rfc1905.NoSuchInstance: Missing.INSTANCE,
    rfc1905.EndOfMibView: Missing.END_OF_VIEW,
}
_NUMBERS: dict[type, type[int]] = {
    rfc1902.Counter32: value_types.Counter32,
    rfc1902.Counter64: value_types.Counter64,
    rfc1902.Gauge32: value_types.Gauge32,
    rfc1902.Unsigned32: value_types.Gauge32,
    rfc1902.TimeTicks: value_types.TimeTicks,
}
_TRANSLATION: dict[type[Exception], type[errors.DeviceError]] = {
    pyasn1.error.PyAsn1Error: Garbled,
    pyasn1.error.ValueConstraintError: Garbled,
    pyasn1.type.error.ValueConstraintError: Garbled,
    pyasn1.error.SubstrateUnderrunError: Garbled,
    pyasn1.error.EndOfStreamError: Garbled,
    pyasn1.error.UnsupportedSubstrateError: Garbled,
    pyasn1.error.PyAsn1UnicodeError: Garbled,
    pyasn1.error.PyAsn1UnicodeDecodeError: Garbled,
    pyasn1.error.PyAsn1UnicodeEncodeError: Garbled,
    pysnmp.error.PySnmpError: errors.DeviceProtocolError,
    # Its decoder lets these out of itself at some octets.
    ValueError: Garbled,
    RecursionError: Garbled,
    TypeError: Garbled,
    LookupError: Garbled,
    ArithmeticError: Garbled,
}
EXPECTED = tuple(_TRANSLATION)


def translate(error: Exception, agent: str) -> errors.DeviceError:
    """The library's exception as one of ours. Its text may repeat the datagram: only its kind is told."""
    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    return kind(
        f"SNMP with {agent} failed", cause=f"pysnmp cannot read the answer ({type(error).__name__})"
    )


class PysnmpPdus:
    """PDUs in pysnmp's codec."""

    def __init__(self, agent: str) -> None:
        self._agent = agent

    def write(self, question: Question, request_id: int) -> bytes:
        pdu = _REQUESTS[question.kind]()
        api = v2c.apiBulkPDU if question.kind == codec.GET_BULK else v2c.apiPDU
        api.set_defaults(pdu)
        api.set_request_id(pdu, request_id)
        if question.kind == codec.GET_BULK:
            api.set_non_repeaters(pdu, question.first)
            api.set_max_repetitions(pdu, question.second)
        api.set_varbinds(pdu, [(oid, v2c.null) for oid in question.oids])
        return bytes(encoder.encode(pdu))

    def read(self, data: bytes) -> Pdu:
        if len(data) > _LONGEST:
            return codec.read_pdu(data, 0, len(data))
        api = v2c.apiPDU
        try:
            pdu, _ = decoder.decode(data, asn1Spec=v2c.ResponsePDU())
            status = int(api.get_error_status(pdu))
            rows = [_row(*pair) for pair in api.get_varbinds(pdu)]
            return Pdu(codec.RESPONSE, int(api.get_request_id(pdu)), status, rows)
        except EXPECTED as error:
            try:
                return codec.read_pdu(
                    data, 0, len(data)
                )  # lenient where devices are known to be sloppy
            except Malformed:
                raise translate(error, self._agent) from None


def _row(name: Any, value: Any) -> Found:
    return str(name), _value(value)


def _value(value: Any) -> Value | Missing:
    kind: type = type(value)
    if kind in _NUMBERS:
        return _NUMBERS[kind](int(value))
    if kind in _MISSING:
        return _MISSING[kind]
    if kind is rfc1902.IpAddress:
        return value_types.IpAddress(".".join(map(str, value.asNumbers())))
    if kind is rfc1902.Opaque:
        return codec.opaque(value.asOctets())
    if isinstance(value, v2c.Integer):
        return int(value)
    if isinstance(value, v2c.OctetString):
        return bytes(value.asOctets())
    if isinstance(value, v2c.ObjectIdentifier):
        return value_types.Oid(str(value))
    return None


def connect(address: str, port: int, community: str, version: str) -> PysnmpLink:
    """A link for SNMP v1 or v2c. Opens a socket, sends nothing. `address` must be an IP literal."""
    agent = f"{address} port {port}"
    speech = CommunitySpeech(exchange.VERSIONS[version], community.encode(), PysnmpPdus(agent))
    return PysnmpLink(_open(address, port), agent, speech, bulk=version != "1")


def connect_v3(address: str, port: int, known: Usm, context: str = "") -> PysnmpUsmLink:
    """A link for SNMPv3, to one context of the agent."""
    return PysnmpUsmLink(_open(address, port), f"{address} port {port}", known, context)


def _open(address: str, port: int) -> socket.socket:
    try:
        opened = socket.socket(
            socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM
        )
    except OSError as error:
        raise gufo_engine.translate(error, f"{address} port {port}") from None
    try:
        opened.setblocking(False)
        opened.connect((address, port))  # so that only the agent is heard, and its refusals are
    except OSError as error:
        opened.close()
        raise gufo_engine.translate(error, f"{address} port {port}") from None
    return opened


class PysnmpLink(Listener):
    """One UDP socket to one agent, for one poll at a time. Always exact."""

    wary = False
    exact = True

    def __init__(self, opened: socket.socket, agent: str, speech: Speech, *, bulk: bool) -> None:
        super().__init__(opened)
        self._agent = agent
        self._speech = speech
        self._bulk = bulk
        self.at_once = _GET_AT_ONCE if bulk else 1  # v1 refuses a whole GET for one missing OID

    async def begin(self, ask: Ask) -> None:
        """v1 and v2c need no introduction."""

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        question = exchange.walk_question(cursor, repetitions, bulk=self._bulk)
        return exchange.page_of(await self._ask(question, wait_s), root)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        return exchange.there(await self._ask(Question(codec.GET, oids), wait_s))

    async def after(self, oids: Sequence[str], wait_s: float) -> Sequence[str]:
        return exchange.names_of(await self._ask(Question(codec.GET_NEXT, oids), wait_s))

    async def _ask(self, question: Question, wait_s: float) -> list[Found]:
        deadline = self._loop.time() + wait_s
        try:
            return await exchange.ask(
                self._speech, question, self._tap, lambda: self._until_readable(deadline)
            )
        except Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        except Reported as report:
            raise usm.refusal(report.which, self._agent) from None
        except OSError as error:
            raise gufo_engine.translate(error, self._agent) from None

    def close(self) -> None:
        """Idempotent."""
        if self._tap.fileno() >= 0:
            self._deaf()
            self._tap.close()


class PysnmpUsmLink(PysnmpLink):
    """SNMPv3. The agent's engine id and clock are remembered outside of it."""

    _speech: SecuredSpeech

    def __init__(self, opened: socket.socket, agent: str, known: Usm, context: str) -> None:
        clock = asyncio.get_running_loop().time
        super().__init__(
            opened, agent, SecuredSpeech(known, PysnmpPdus(agent), context, clock), bulk=True
        )
        self._usm = known

    async def begin(self, ask: Ask) -> None:
        """Learn the agent's engine id, if it is not known. Its clock is told by a report when ours is off."""
        if not self._usm.engine_id:
            await ask(self._introduce)

    async def _introduce(self, _: int, wait_s: float) -> None:
        deadline = self._loop.time() + wait_s
        try:
            await exchange.introduce(
                self._speech, self._tap, lambda: self._until_readable(deadline)
            )
        except Malformed as error:
            raise Garbled(f"SNMP with {self._agent} failed", cause=str(error)) from None
        except OSError as error:
            raise gufo_engine.translate(error, self._agent) from None
