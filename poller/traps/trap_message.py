"""Notifications in datagrams: SNMP v1 and v2c messages, and the PDUs of all versions.

pysnmp decodes them. A message counts only after a credential has opened it.
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
_STANDARD_TRAPS = "1.3.6.1.6.3.1.1.5."
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

#: Exceptions that the libraries raise for malformed octets.
CODEC_ERRORS = (
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
    """The datagram is not a notification."""


class Refused(Exception):
    """The credential does not open the notification."""


class Replayed(Refused):
    """The credential opens the notification, but the notification is old."""


class Notification(NamedTuple):
    """The event that a device announces, by its name or else its OID."""

    name: str
    if_index: int | None = None


class TrapMessage(Protocol):
    """A notification that is not verified yet."""

    def open(self, credential: Credential, now_s: float) -> Notification:
        """Raises Refused, Malformed."""
        ...

    def acknowledgement(self) -> bytes | None:
        """The response that the sender waits for, if any."""
        ...


@dataclass(frozen=True, slots=True)
class CommunityTrap:
    """A message of SNMP v1 or v2c: its community is its only proof."""

    message: Any
    version: int

    def open(self, credential: Credential, now_s: float) -> Notification:
        if not isinstance(credential, Community):
            raise Refused

        expected = credential.community.get_secret_value().encode()
        received = bytes(_api(self.version).apiMessage.get_community(self.message))
        if not hmac.compare_digest(received, expected):
            raise Refused
        try:
            return read_notification(self._pdu())
        except CODEC_ERRORS as error:
            raise Malformed from error

    def acknowledgement(self) -> bytes | None:
        """An inform is acknowledged with its own content."""
        pdu = self._pdu()
        if not isinstance(pdu, _V2C.InformRequestPDU):
            return None

        response = _V2C.apiPDU.get_response(pdu)
        varbinds = _V2C.apiPDU.get_varbinds(pdu)
        _V2C.apiPDU.set_varbinds(response, varbinds)
        message = _V2C.apiMessage.get_response(self.message)
        _V2C.apiMessage.set_pdu(message, response)
        return bytes(encoder.encode(message))

    def _pdu(self) -> Any:
        """The PDU inside the message."""
        return _api(self.version).apiMessage.get_pdu(self.message)


def parse_community_trap(datagram: bytes, version: int) -> CommunityTrap:
    """Raises Malformed."""
    try:
        message, rest = decoder.decode(datagram, asn1Spec=_api(version).Message())
        pdu = _api(version).apiMessage.get_pdu(message)
    except CODEC_ERRORS as error:
        raise Malformed from error
    if rest or not isinstance(pdu, (_V1.TrapPDU, _V2C.SNMPv2TrapPDU, _V2C.InformRequestPDU)):
        raise Malformed
    return CommunityTrap(message, version)


def version_of(datagram: bytes) -> int:
    """0 for v1, 1 for v2c, 3 for v3, read without decoding the rest. Raises Malformed."""
    if len(datagram) < 5 or datagram[0] != 0x30:
        raise Malformed

    long_form = datagram[1] >= 0x80
    at = 2 + (datagram[1] & 0x7F) if long_form else 2
    if datagram[at : at + 2] != b"\x02\x01" or len(datagram) <= at + 2:
        raise Malformed
    version = datagram[at + 2]
    if version not in (0, 1, 3):
        raise Malformed
    return version


def read_notification(pdu: Any) -> Notification:
    """The content of a verified PDU. Raises CODEC_ERRORS."""
    if isinstance(pdu, _V1.TrapPDU):
        return Notification(_v1_name(pdu), _if_index(pdu, _V1.apiTrapPDU))
    if not isinstance(pdu, (_V2C.SNMPv2TrapPDU, _V2C.InformRequestPDU)):
        raise ValueError("no notification")

    values = {_dotted(name): value for name, value in _V2C.apiPDU.get_varbinds(pdu)}
    trap_oid = _dotted(values[_TRAP_OID])
    name = trap_oid
    number = trap_oid.removeprefix(_STANDARD_TRAPS)
    if number != trap_oid and number.isdigit():
        name = _NAMES.get(int(number), trap_oid)
    return Notification(name, _if_index(pdu, _V2C.apiPDU))


def _v1_name(pdu: Any) -> str:
    """The name of a generic trap; for an enterprise trap the OID that SNMP v2c gives it."""
    generic = int(_V1.apiTrapPDU.get_generic_trap(pdu))
    enterprise = _dotted(_V1.apiTrapPDU.get_enterprise(pdu))
    specific = int(_V1.apiTrapPDU.get_specific_trap(pdu))
    return _NAMES.get(generic + 1, f"{enterprise}.0.{specific}")


def _if_index(pdu: Any, pdu_api: Any) -> int | None:
    """Index of the interface that the notification is about, if any."""
    for name, value in pdu_api.get_varbinds(pdu):
        if _dotted(name).startswith(_IF_INDEX):
            return int(value)
    return None


def _dotted(oid: Any) -> str:
    """An OID of pysnmp as text."""
    arcs = tuple(oid)
    return ".".join(map(str, arcs))


def _api(version: int) -> Any:
    """pysnmp's module for a version."""
    return _V1 if version == 0 else _V2C
