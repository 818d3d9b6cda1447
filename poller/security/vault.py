"""Encryption of credentials: AES-256-GCM envelopes that open only for their own credential.

An envelope is `v2:<key id>:<base64 of nonce + ciphertext>`. Its version, the kind and the name of
the credential are authenticated with the secret, so an envelope copied to another row does not
open. Envelopes of version 1, which authenticate the name only, still open; `poller credential
rotate-key` seals them anew.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from cryptography import exceptions as theirs
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from poller import errors
from poller.security import vault_keys as key_store
from poller.security.vault_keys import KEY_BYTES

NONCE_BYTES = 12
VERSION = "v2"
OLD_VERSION = "v1"

#: Every exception that the library raises while it encrypts or decrypts.
TRANSLATION: dict[type[Exception], type[errors.PollerError]] = {
    theirs.InvalidTag: errors.SecretKeyError,
    theirs.InvalidKey: errors.SecretKeyError,
    theirs.InvalidSignature: errors.SecretKeyError,
    theirs.UnsupportedAlgorithm: errors.ConfigError,  # a crypto library built without AES-GCM
    theirs.InternalError: errors.Bug,
    theirs.AlreadyFinalized: errors.Bug,
    theirs.AlreadyUpdated: errors.Bug,
    theirs.NotYetFinalized: errors.Bug,
}


class Keyring:
    """One or more keys: the first seals, any of them opens. Its repr shows key ids only.

    `reload` reads the keys again when an envelope needs an unknown one: the key may have been
    rotated while this process was running.
    """

    def __init__(
        self,
        keys: Sequence[bytes],
        source: str = "",
        reload: Callable[[], Sequence[bytes]] | None = None,
    ) -> None:
        self.source = source
        self._reload = reload
        self._use(keys)

    @classmethod
    def load(cls, secret_key: str | None, home: Path) -> Self:
        """The keys of this installation. Creates the key file if there is none."""
        if secret_key:
            keys = key_store.parse(secret_key, key_store.ENVIRONMENT)
            return cls(keys, key_store.ENVIRONMENT)

        path = home / key_store.FILE_NAME
        if not path.exists():
            key_store.create(path)
        return cls(key_store.read(path), str(path), reload=partial(key_store.read, path))

    def _use(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise errors.SecretKeyError("there is no key to encrypt credentials with")

        self._ciphers: dict[str, AESGCM] = {}
        for key in keys:
            cipher = AESGCM(_checked(key))
            self._ciphers[key_id(key)] = cipher
        self.first_id = key_id(keys[0])

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all keys, the sealing one first."""
        return tuple(self._ciphers)

    def refuse_foreign(self, envelopes: Iterable[str]) -> None:
        """Raise SecretKeyError if there are stored envelopes and no key here opens any of them."""
        needed = {sealed_with(envelope) for envelope in envelopes}
        if needed and not needed & set(self.ids):
            raise errors.SecretKeyError(
                "this is not the key the stored credentials were encrypted with",
                cause=f"they need {', '.join(sorted(needed))}; present: {', '.join(self.ids)}",
                hint=key_store.RIGHT_KEY_HINT,
            )

    def seal(self, text: str, name: str, kind: str) -> str:
        """Encrypt the secret of the credential called `name`, of this kind."""
        nonce = os.urandom(NONCE_BYTES)
        cipher = self._ciphers[self.first_id]
        ciphertext = cipher.encrypt(nonce, text.encode(), _authenticated(VERSION, name, kind))
        blob = base64.b64encode(nonce + ciphertext).decode()
        return f"{VERSION}:{self.first_id}:{blob}"

    def open(self, envelope: str, name: str, kind: str) -> str:
        """Decrypt the secret of the credential called `name`, of this kind.

        Raises SecretKeyError if the key is missing or the envelope is of another credential.
        """
        version, needed, blob = _parse(envelope, name)
        cipher = self._ciphers.get(needed)
        if cipher is None and self._reload:
            self._use(self._reload())
            cipher = self._ciphers.get(needed)
        if cipher is None:
            raise self._missing(needed, name)
        nonce = blob[:NONCE_BYTES]
        ciphertext = blob[NONCE_BYTES:]
        try:
            return cipher.decrypt(nonce, ciphertext, _authenticated(version, name, kind)).decode()
        except tuple(TRANSLATION) as error:
            raise _translated(error, name) from None

    def _missing(self, needed: str, name: str) -> errors.SecretKeyError:
        """The error of a key that is not in this ring."""
        origin = f" (from {self.source})" if self.source else ""
        return errors.SecretKeyError(
            f'credential "{name}" needs key {needed}, which is not here',
            cause=f"present: {', '.join(self.ids)}{origin}",
            hint="restore the old key, or store the secret again: poller credential rotate " + name,
        )

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self.ids)})"


def key_problem(secret_key: str | None, home: Path, envelopes: Sequence[str]) -> str:
    """Why stored envelopes cannot be opened with the keys here; "" if all can. Creates no key."""
    if not envelopes:
        return ""
    if not secret_key and not (home / key_store.FILE_NAME).exists():
        return f"the {len(envelopes)} stored credentials need a secret key, and there is none here"

    ring = Keyring.load(secret_key, home)
    needed = [sealed_with(envelope) for envelope in envelopes]
    missing = [each for each in needed if each not in ring.ids]
    if not missing:
        return ""
    keys = ", ".join(sorted(set(missing)))
    return (
        f"{len(missing)} of {len(needed)} stored credentials need another secret key ({keys}) "
        f"than the one from {ring.source} ({', '.join(ring.ids)})"
    )


def _translated(error: Exception, name: str) -> errors.PollerError:
    """The error of ours, without the library's text, which may quote a secret."""
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    if kind is errors.SecretKeyError:
        return kind(
            f'the stored secret of credential "{name}" does not open',
            cause="the row was altered, or copied from another credential",
            hint=f"store it again: poller credential rotate {name}",
        )
    return kind(
        f'the stored secret of credential "{name}" cannot be opened here',
        cause=type(error).__name__,
    )


def key_id(key: bytes) -> str:
    """A short public name of a key, made by a one-way hash."""
    return hashlib.blake2b(key, digest_size=4, person=b"poller-key-id").hexdigest()


def sealed_with(envelope: str) -> str:
    """The id of the key an envelope needs."""
    return envelope.split(":", 2)[1] if envelope.count(":") >= 2 else ""


def is_current(envelope: str) -> bool:
    """Whether an envelope has the version that `seal` makes."""
    return envelope.startswith(f"{VERSION}:")


def _authenticated(version: str, name: str, kind: str) -> bytes:
    if version == OLD_VERSION:
        return b"poller credential\0" + name.encode()
    return "\0".join(("poller credential", version, kind, name)).encode()


def _parse(envelope: str, name: str) -> tuple[str, str, bytes]:
    """The version, the id of the needed key, and nonce + ciphertext."""
    version, _, rest = envelope.partition(":")
    needed, _, text = rest.partition(":")
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        blob = b""
    if version not in (VERSION, OLD_VERSION) or len(blob) <= NONCE_BYTES:
        raise errors.SecretKeyError(
            f'the stored secret of credential "{name}" is not a known envelope',
            hint=f"store it again: poller credential rotate {name}",
        )
    return version, needed, blob


def _checked(key: bytes) -> bytes:
    """The key itself. Raises SecretKeyError if its length is wrong."""
    length = len(key)
    if length != KEY_BYTES:
        raise errors.SecretKeyError(f"a key must have {KEY_BYTES} bytes, this one has {length}")
    return key
