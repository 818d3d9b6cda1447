"""SNMPv3 notifications: sender, signature, age and content.

The sender's engine is the authoritative one, so no discovery precedes a trap: the keys are derived
for the engine that the message names, from the passwords of the device it came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyasn1.codec.ber import decoder
from pysnmp.proto import rfc1905

from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.wire import codec, usm, v3_message
from poller.collectors.snmp.wire.usm_keys import Keys
from poller.collectors.snmp.wire.v3_message import Envelope
from poller.traps.engine_clocks import EngineClocks
from poller.traps.trap_message import (
    CODEC_ERRORS,
    Malformed,
    Notification,
    Refused,
    Replayed,
    read_notification,
)

#: Octets of an engine id (RFC 3411).
_MIN_ENGINE_ID = 5
_MAX_ENGINE_ID = 32


@dataclass(frozen=True, slots=True)
class UsmTrap:
    """An SNMPv3 notification that is not verified yet."""

    datagram: bytes
    envelope: Envelope
    clocks: EngineClocks

    def open(self, credential: Credential, now_s: float) -> Notification:
        """The content, if the credential proves the sender. Raises Refused, Replayed, Malformed."""
        envelope = self.envelope
        if not isinstance(credential, SnmpV3) or credential.username.encode() != envelope.user:
            raise Refused

        passwords = usm.passwords(credential)
        if passwords.auth:
            auth_only = passwords._replace(priv=b"")
            self._check_signature(auth_only.localized(envelope.engine_id))
            self._check_age(usm.fingerprint(credential), now_s)
        pdu = self._decrypt(passwords.localized(envelope.engine_id))
        try:
            return read_notification(pdu)
        except CODEC_ERRORS as error:
            raise Malformed from error

    def acknowledgement(self) -> bytes | None:
        """None: only an SNMP engine of our own could acknowledge a v3 inform."""
        return None

    def _check_signature(self, keys: Keys) -> None:
        """Raises Refused."""
        length = len(self.datagram)
        if not v3_message.is_authentic(self.datagram, length, self.envelope, keys):
            raise Refused

    def _check_age(self, user: str, now_s: float) -> None:
        """Raises Replayed."""
        envelope = self.envelope
        timely = self.clocks.is_timely(
            envelope.engine_id, envelope.boots, envelope.time, now_s, user
        )
        if not timely:
            raise Replayed

    def _decrypt(self, keys: Keys) -> Any:
        """The PDU inside. Raises Refused if the keys do not open it, Malformed if it is no PDU."""
        encrypted = bool(self.envelope.flags & v3_message.PRIV)
        if encrypted != (self.envelope.data_tag == codec.OCTETS):
            raise Malformed
        try:
            plain, at, end = v3_message.scoped(self.datagram, self.envelope, keys)
            pdu, _ = decoder.decode(plain[at:end], asn1Spec=rfc1905.PDUs())
            return pdu.getComponent()
        except CODEC_ERRORS as error:
            raise (Refused if encrypted else Malformed) from error


def parse_v3_trap(datagram: bytes, clocks: EngineClocks) -> UsmTrap:
    """Raises Malformed."""
    try:
        envelope = v3_message.parse(datagram, len(datagram))
    except codec.Malformed as error:
        raise Malformed from error
    if not _MIN_ENGINE_ID <= len(envelope.engine_id) <= _MAX_ENGINE_ID:
        raise Malformed
    return UsmTrap(datagram, envelope, clocks)
