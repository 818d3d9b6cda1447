"""Keys of an SNMPv3 user: from passwords to those of one agent (RFC 3414, 3826, 7860, and two drafts for long ones)."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

_HASHES = {
    "MD5": "md5",
    "SHA": "sha1",
    "SHA224": "sha224",
    "SHA256": "sha256",
    "SHA384": "sha384",
    "SHA512": "sha512",
}
#: Octets of a digest in a message.
_DIGESTS = {"MD5": 12, "SHA": 12, "SHA224": 16, "SHA256": 24, "SHA384": 32, "SHA512": 48}
#: Octets of a key; for DES half of them are for the initialisation vector.
_SIZES = {"DES": 16, "AES": 16, "AES192": 24, "AES192C": 24, "AES256": 32, "AES256C": 32}
_MEGABYTE = 1 << 20
_KEPT = 1024
_masters: dict[tuple[str, bytes], bytes] = {}


class Keys(NamedTuple):
    """Of one user on one agent. Empty texts: no authentication, no privacy. Never printed."""

    hash: str = ""
    digest_size: int = 0
    auth: bytes = b""
    cipher: str = ""
    priv: bytes = b""

    def __repr__(self) -> str:
        return "<Keys>"

    @property
    def flags(self) -> int:
        """msgFlags of a message that uses them, without the one that asks for reports."""
        return bool(self.hash) | bool(self.cipher) << 1


class Passwords(NamedTuple):
    """Protocols by the names of `credentials.SnmpV3`; no password: not used. Never printed."""

    auth_protocol: str = "SHA"
    auth: bytes = b""
    priv_protocol: str = "AES"
    priv: bytes = b""

    def __repr__(self) -> str:
        return "<Passwords>"

    def localized(self, engine_id: bytes) -> Keys:
        if not self.auth:
            return Keys()
        name = _HASHES[self.auth_protocol]
        auth = _localize(name, master(self.auth_protocol, self.auth), engine_id)
        made = Keys(name, _DIGESTS[self.auth_protocol], auth)
        if not self.priv:
            return made
        # Privacy keys are derived with the authentication protocol, too (RFC 3414, 2.6).
        priv = _localize(name, master(self.auth_protocol, self.priv), engine_id)
        size, cisco = _SIZES[self.priv_protocol], self.priv_protocol.endswith("C")
        while len(priv) < size:
            priv += _more(name, priv, engine_id, cisco=cisco)
        return made._replace(cipher=self.priv_protocol.removesuffix("C"), priv=priv[:size])


def master(auth_protocol: str, password: bytes) -> bytes:
    """A megabyte of hashing by design, so a fleet that shares a password does it once; kept by a digest of it."""
    name = (auth_protocol, hashlib.sha256(password).digest())
    if name not in _masters:
        if len(_masters) >= _KEPT:
            _masters.clear()
        _masters[name] = _stretch(_HASHES[auth_protocol], password)
    return _masters[name]


def _stretch(name: str, password: bytes) -> bytes:
    return hashlib.new(name, (password * (_MEGABYTE // len(password) + 1))[:_MEGABYTE]).digest()


def _localize(name: str, key: bytes, engine_id: bytes) -> bytes:
    return hashlib.new(name, key + engine_id + key).digest()


def _more(name: str, key: bytes, engine_id: bytes, *, cisco: bool) -> bytes:
    """What follows a key that is too short: Reeder's way, which Cisco took, or Blumenthal's."""
    return (
        _localize(name, _stretch(name, key), engine_id)
        if cisco
        else hashlib.new(name, key).digest()
    )
