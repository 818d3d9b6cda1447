"""Keys of an SNMPv3 user, from passwords to keys for one agent.

RFC 3414, 3826 and 7860, and two drafts (Blumenthal, Reeder) for keys longer than their hash.
"""

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
_DIGEST_SIZES = {"MD5": 12, "SHA": 12, "SHA224": 16, "SHA256": 24, "SHA384": 32, "SHA512": 48}
#: Octets of a privacy key. The second half of a DES key masks the initialisation vector.
_KEY_SIZES = {"DES": 16, "AES": 16, "AES192": 24, "AES192C": 24, "AES256": 32, "AES256C": 32}
_MEGABYTE = 1 << 20
_MAX_MASTER_KEYS = 1024
_master_keys: dict[tuple[str, bytes], bytes] = {}


class Keys(NamedTuple):
    """Keys of one user on one agent. Never printed.

    An empty `hash` means no authentication, an empty `cipher` no privacy.
    """

    hash: str = ""
    digest_size: int = 0
    auth: bytes = b""
    cipher: str = ""
    priv: bytes = b""

    def __repr__(self) -> str:
        return "<Keys>"

    @property
    def flags(self) -> int:
        """msgFlags of a message with these keys, without the reportable flag."""
        return bool(self.hash) | bool(self.cipher) << 1


class Passwords(NamedTuple):
    """Passwords, with protocol names as in `credentials.SnmpV3`; b"" means none. Never printed."""

    auth_protocol: str = "SHA"
    auth: bytes = b""
    priv_protocol: str = "AES"
    priv: bytes = b""

    def __repr__(self) -> str:
        return "<Passwords>"

    def localized(self, engine_id: bytes) -> Keys:
        """The keys for the agent with this engine id."""
        if not self.auth:
            return Keys()

        name = _HASHES[self.auth_protocol]
        auth = _localize(name, master_key(self.auth_protocol, self.auth), engine_id)
        keys = Keys(name, _DIGEST_SIZES[self.auth_protocol], auth)
        if not self.priv:
            return keys

        # The authentication protocol's hash derives the privacy key as well (RFC 3414, 2.6).
        priv = _localize(name, master_key(self.auth_protocol, self.priv), engine_id)
        size = _KEY_SIZES[self.priv_protocol]
        reeder = self.priv_protocol.endswith("C")
        while len(priv) < size:
            priv += _extension(name, priv, engine_id, reeder=reeder)
        cipher = self.priv_protocol.removesuffix("C")
        return keys._replace(cipher=cipher, priv=priv[:size])


def master_key(auth_protocol: str, password: bytes) -> bytes:
    """The key that a password stands for, before it is localized.

    It hashes a megabyte by design, so it is cached by the digest of the password: a fleet with one
    password computes it once.
    """
    name = (auth_protocol, hashlib.sha256(password).digest())
    if name not in _master_keys:
        if len(_master_keys) >= _MAX_MASTER_KEYS:
            _master_keys.clear()
        _master_keys[name] = _hash_megabyte(_HASHES[auth_protocol], password)
    return _master_keys[name]


def _hash_megabyte(name: str, password: bytes) -> bytes:
    """The hash of a password repeated to a megabyte (RFC 3414, A.2)."""
    count = _MEGABYTE // len(password) + 1
    repeated = password * count
    return hashlib.new(name, repeated[:_MEGABYTE]).digest()


def _localize(name: str, key: bytes, engine_id: bytes) -> bytes:
    """A key for one engine, from a key for all of them (RFC 3414, 2.6)."""
    content = key + engine_id + key
    return hashlib.new(name, content).digest()


def _extension(name: str, key: bytes, engine_id: bytes, *, reeder: bool) -> bytes:
    """Octets that follow a key too short for its cipher: after Reeder (Cisco) or Blumenthal."""
    if reeder:
        longer = _hash_megabyte(name, key)
        return _localize(name, longer, engine_id)
    return hashlib.new(name, key).digest()
