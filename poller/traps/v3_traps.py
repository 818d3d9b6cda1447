"""SNMPv3 notifications: who sent it, is it whole, is it from now, and what is inside?

The sender's engine is the authoritative one, so nothing has to be exchanged first: keys are made for the engine
that the message names, from the passwords of the device it came from. pysnmp does the hashing and the ciphers.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyasn1.codec.ber import decoder
from pyasn1.type import univ
from pysnmp.hlapi import v3arch
from pysnmp.proto.mpmod.rfc3412 import ScopedPDU, SNMPv3Message
from pysnmp.proto.secmod.rfc3414.service import SnmpUSMSecurityModel, UsmSecurityParameters

from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.wire import usm
from poller.traps.engine_clocks import Clocks
from poller.traps.trap_message import BROKEN, Malformed, Notice, Refused, Replayed, notice

_AUTH_FLAG, _PRIV_FLAG = 1, 2
_USM = 3
_AUTH = {
    "MD5": v3arch.USM_AUTH_HMAC96_MD5,
    "SHA": v3arch.USM_AUTH_HMAC96_SHA,
    "SHA224": v3arch.USM_AUTH_HMAC128_SHA224,
    "SHA256": v3arch.USM_AUTH_HMAC192_SHA256,
    "SHA384": v3arch.USM_AUTH_HMAC256_SHA384,
    "SHA512": v3arch.USM_AUTH_HMAC384_SHA512,
}
_PRIV = {
    "DES": v3arch.USM_PRIV_CBC56_DES,
    "AES": v3arch.USM_PRIV_CFB128_AES,
    "AES192": v3arch.USM_PRIV_CFB192_AES_BLUMENTHAL,
    "AES192C": v3arch.USM_PRIV_CFB192_AES,
    "AES256": v3arch.USM_PRIV_CFB256_AES_BLUMENTHAL,
    "AES256C": v3arch.USM_PRIV_CFB256_AES,
}
MOST_KEYS = 4096


class _Sender(NamedTuple):
    """What the message says of its sender, in the clear."""

    engine_id: bytes
    boots: int
    time: int
    user: bytes
    digest: Any
    salt: Any


@dataclass(slots=True)
class Keys:
    """Keys made of passwords, by credential and engine: making one takes a hash over a megabyte."""

    _made: OrderedDict[tuple[str, SnmpV3, bytes], Any] = field(default_factory=OrderedDict)

    def __repr__(self) -> str:
        return f"<Keys, {len(self._made)}>"

    def auth(self, credential: SnmpV3, engine_id: bytes) -> Any:
        service, password = _auth_service(credential), credential.auth_password
        return self._key(
            "auth", credential, engine_id, password, service.hash_passphrase, service.localize_key
        )

    def priv(self, credential: SnmpV3, engine_id: bytes) -> Any:
        service, auth = _priv_service(credential), _AUTH[credential.auth_protocol]
        return self._key(
            "priv",
            credential,
            engine_id,
            credential.priv_password,
            lambda password: service.hash_passphrase(auth, password),
            lambda key, engine: service.localize_key(auth, key, engine),
        )

    def _key(
        self,
        use: str,
        credential: SnmpV3,
        engine_id: bytes,
        password: Any,
        hashed: Any,
        localized: Any,
    ) -> Any:
        master = self._kept(
            (f"{use} master", credential, b""), lambda: hashed(password.get_secret_value())
        )
        return self._kept(
            (use, credential, engine_id), lambda: localized(master, univ.OctetString(engine_id))
        )

    def _kept(self, name: tuple[str, SnmpV3, bytes], make: Any) -> Any:
        if name not in self._made:
            self._made[name] = make()
        self._made.move_to_end(name)
        while len(self._made) > MOST_KEYS:
            self._made.popitem(last=False)
        return self._made[name]

    def forget(self) -> None:
        self._made.clear()


@dataclass(frozen=True, slots=True)
class Secure:
    """A v3 notification, not opened yet."""

    datagram: bytes
    message: Any
    sender: _Sender
    flags: int
    keys: Keys
    clocks: Clocks

    def open(self, credential: Credential, now_s: float) -> Notice:
        if not isinstance(credential, SnmpV3) or credential.username.encode() != self.sender.user:
            raise Refused
        try:
            if credential.auth_password is not None:
                self._authenticate(credential)
                if not self._is_timely(usm.fingerprint(credential), now_s):
                    raise Replayed
            scoped = self._scoped(credential)
            return notice(scoped.getComponentByName("data").getComponent())
        except BROKEN as error:
            raise Malformed from error

    def answer(self) -> bytes | None:
        """A v3 inform is for an engine that answers: we are none, and nobody is led to believe it."""
        return None

    def _is_timely(self, user: str, now_s: float) -> bool:
        sender = self.sender
        return self.clocks.timely(sender.engine_id, sender.boots, sender.time, now_s, user)

    def _authenticate(self, credential: SnmpV3) -> None:
        if not self.flags & _AUTH_FLAG:
            raise Refused
        key = self.keys.auth(credential, self.sender.engine_id)
        try:
            _auth_service(credential).authenticate_incoming_message(
                key, self.sender.digest, self.datagram
            )
        except BROKEN:
            raise Refused from None

    def _scoped(self, credential: SnmpV3) -> Any:
        data = self.message.getComponentByName("msgData")
        if not self.flags & _PRIV_FLAG:
            return data.getComponentByName("plaintext")
        if credential.priv_password is None or credential.auth_password is None:
            raise Refused
        key = self.keys.priv(credential, self.sender.engine_id)
        about = (self.sender.boots, self.sender.time, self.sender.salt)
        try:
            clear = _priv_service(credential).decrypt_data(
                key, about, data.getComponentByName("encryptedPDU")
            )
            return decoder.decode(clear, asn1Spec=ScopedPDU())[0]
        except BROKEN:
            raise Refused from None


def parse_secure(datagram: bytes, keys: Keys, clocks: Clocks) -> Secure:
    """Raises Malformed."""
    try:
        message, rest = decoder.decode(datagram, asn1Spec=SNMPv3Message())
        header = message.getComponentByName("msgGlobalData")
        flags = bytes(header.getComponentByName("msgFlags"))[0]
        model = int(header.getComponentByName("msgSecurityModel"))
        fields, _ = decoder.decode(
            message.getComponentByName("msgSecurityParameters"), asn1Spec=UsmSecurityParameters()
        )
        engine_id, boots, time, user, digest, salt = (
            fields.getComponentByPosition(n) for n in range(6)
        )
        sender = _Sender(bytes(engine_id), int(boots), int(time), bytes(user), digest, salt)
    except BROKEN as error:
        raise Malformed from error
    if rest or model != _USM or not 5 <= len(sender.engine_id) <= 32:
        raise Malformed
    return Secure(datagram, message, sender, flags, keys, clocks)


def _auth_service(credential: SnmpV3) -> Any:
    return SnmpUSMSecurityModel.AUTH_SERVICES[_AUTH[credential.auth_protocol]]


def _priv_service(credential: SnmpV3) -> Any:
    return SnmpUSMSecurityModel.PRIV_SERVICES[_PRIV[credential.priv_protocol]]
