"""What does a datagram announce? SNMP v1, v2c and v3 notifications, decoded with pysnmp's own codecs.

An envelope can be parsed by anybody; what is inside is believed only when a credential opens it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from pyasn1.codec.ber import decoder, encoder
from pyasn1.error import PyAsn1Error
from pysnmp.error import PySnmpError
from pysnmp.proto import api

from poller.collectors.credentials import Community, Credential

COLD_START, WARM_START, LINK_DOWN, LINK_UP = "coldStart", "warmStart", "linkDown", "linkUp"
_STANDARD = "1.3.6.1.6.3.1.1.5."
_NAMES = {
    1: COLD_START,
    2: WARM_START,
    3: LINK_DOWN,
    4: LINK_UP,
    5: "authenticationFailure",
    6: "egpNeighborLoss",
}
_TRAP_OID = "1.3.6.1.6.3.1.1.4.1.0"
_IF_INDEX = "1.3.6.1.2.1.2.2.1.1."
_V1 = api.PROTOCOL_MODULES[api.SNMP_VERSION_1]
_V2C = api.PROTOCOL_MODULES[api.SNMP_VERSION_2C]

#: What the libraries raise for bytes that are not what they seem.
BROKEN = (
    PyAsn1Error,
    PySnmpError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    MemoryError,
    RuntimeError,
)


class Malformed(Exception):
    """No notification at all."""


class Refused(Exception):
    """A notification that this credential does not open."""


class Replayed(Refused):
    """It opens, and it is not from now."""


class Notice(NamedTuple):
    """What was announced, by its name or else its OID."""

    name: str
    if_index: int | None = None


class Envelope(Protocol):
    """A notification that nobody has vouched for yet."""

    def open(self, credential: Credential, now_s: float) -> Notice:
        """Raises Refused, Malformed."""
        ...

    def answer(self) -> bytes | None:
        """What the sender waits for, if anything."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Of SNMP v1 or v2c: the community is all that vouches for it."""

    message: Any
    version: int

    def open(self, credential: Credential, now_s: float) -> Notice:
        if not isinstance(credential, Community):
            raise Refused
        expected = credential.community.get_secret_value().encode()
        if not hmac.compare_digest(
            bytes(_api(self.version).apiMessage.get_community(self.message)), expected
        ):
            raise Refused
        try:
            return notice(self._pdu())
        except BROKEN as error:
            raise Malformed from error

    def answer(self) -> bytes | None:
        """An inform is acknowledged by its own content."""
        pdu = self._pdu()
        if not isinstance(pdu, _V2C.InformRequestPDU):
            return None
        reply = _V2C.apiPDU.get_response(pdu)
        _V2C.apiPDU.set_varbinds(reply, _V2C.apiPDU.get_varbinds(pdu))
        message = _V2C.apiMessage.get_response(self.message)
        _V2C.apiMessage.set_pdu(message, reply)
        return bytes(encoder.encode(message))

    def _pdu(self) -> Any:
        return _api(self.version).apiMessage.get_pdu(self.message)


def parse_plain(datagram: bytes, version: int) -> Plain:
    """Raises Malformed."""
    try:
        message, rest = decoder.decode(datagram, asn1Spec=_api(version).Message())
        pdu = _api(version).apiMessage.get_pdu(message)
    except BROKEN as error:
        raise Malformed from error
    if rest or not isinstance(pdu, (_V1.TrapPDU, _V2C.SNMPv2TrapPDU, _V2C.InformRequestPDU)):
        raise Malformed
    return Plain(message, version)


def version_of(datagram: bytes) -> int:
    """0 for v1, 1 for v2c, 3 for v3, read without decoding the rest. Raises Malformed."""
    if len(datagram) < 5 or datagram[0] != 0x30:
        raise Malformed
    at = 2 if datagram[1] < 0x80 else 2 + (datagram[1] & 0x7F)
    if (
        datagram[at : at + 2] != b"\x02\x01"
        or len(datagram) <= at + 2
        or datagram[at + 2] not in (0, 1, 3)
    ):
        raise Malformed
    return datagram[at + 2]


def notice(pdu: Any) -> Notice:
    """Of a PDU that somebody vouched for. Raises what BROKEN names."""
    if isinstance(pdu, _V1.TrapPDU):
        generic = int(_V1.apiTrapPDU.get_generic_trap(pdu))
        own = f"{_dotted(_V1.apiTrapPDU.get_enterprise(pdu))}.0.{int(_V1.apiTrapPDU.get_specific_trap(pdu))}"
        return Notice(
            _NAMES.get(generic + 1, own) if generic < len(_NAMES) else own,
            _if_index(pdu, _V1.apiTrapPDU),
        )
    if not isinstance(pdu, (_V2C.SNMPv2TrapPDU, _V2C.InformRequestPDU)):
        raise ValueError("no notification")
    found = {_dotted(name): value for name, value in _V2C.apiPDU.get_varbinds(pdu)}
    text = _dotted(found[_TRAP_OID])
    number = text.removeprefix(_STANDARD)
    name = (
        _NAMES.get(int(number), text) if text.startswith(_STANDARD) and number.isdigit() else text
    )
    return Notice(name, _if_index(pdu, _V2C.apiPDU))


def _if_index(pdu: Any, methods: Any) -> int | None:
    for name, value in methods.get_varbinds(pdu):
        if _dotted(name).startswith(_IF_INDEX):
            return int(value)
    return None


def _dotted(oid: Any) -> str:
    return ".".join(map(str, tuple(oid)))


def _api(version: int) -> Any:
    return _V1 if version == 0 else _V2C
