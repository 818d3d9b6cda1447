"""A new key for the vault: first the key is safe on disk, then everything is encrypted with it.

In this order a crash at any point leaves every credential readable: the old key is still there.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.engine import Engine

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import credential_rows
from poller.security import vault, vault_keys
from poller.security.vault import Keyring


class Rekeyed(NamedTuple):
    credentials: int
    key_id: str
    place: str  # a file, or the environment variable


def run(services: Services, engine: Engine) -> Rekeyed:
    """Make a key (or take the new first one of the environment) and re-encrypt in one transaction."""
    ring = services.keyring
    if services.settings.secret_key:
        _expect_two(ring)
    else:
        credential_rows.reseal(engine, lambda name, envelope: _still_opens(ring, name, envelope))
        path = services.settings.home / vault_keys.FILE_NAME
        vault_keys.replace(path, [vault_keys.new(), *vault_keys.read(path)])
        ring = Keyring.load(None, services.settings.home)
    count = credential_rows.reseal(engine, lambda name, envelope: resealed(ring, name, envelope))
    return Rekeyed(count, ring.first_id, ring.source)


def _still_opens(ring: Keyring, name: str, envelope: str) -> str:
    """Before anything changes: a credential that does not open now would not open afterwards."""
    ring.open(envelope, name)
    return envelope


def resealed(ring: Keyring, name: str, envelope: str) -> str:
    if vault.sealed_with(envelope) == ring.first_id:
        return envelope
    return ring.seal(ring.open(envelope, name), name)


def _expect_two(ring: Keyring) -> None:
    if len(ring.ids) < 2:
        raise errors.SecretKeyError(
            f"{vault_keys.ENVIRONMENT} holds one key only, so there is no new one to change to",
            hint=f"set {vault_keys.ENVIRONMENT}=NEW,OLD everywhere (openssl rand -base64 32 makes one), then repeat",
        )
