"""Decrypted credentials, kept briefly and only in memory: at most one SQL statement for a batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from poller import errors
from poller.bootstrap import Services
from poller.collectors import credentials
from poller.collectors.credentials import Credential
from poller.db.inventory import inventory_feed
from poller.observability import logs
from poller.workers.batch.target_cache import CachedTarget

log = logs.get(__name__)

#: A decrypted credential, or the error that keeps it from being decrypted.
CredentialOrError = Credential | errors.PollerError


class _Entry(NamedTuple):
    expires_mono: float
    credential: CredentialOrError


class CredentialCache:
    """Credentials by id, safe for threads."""

    def __init__(self, services: Services, lifetime_s: float) -> None:
        self._engine = services.engine
        self._keyring = services.keyring
        self._redactor = services.redactor
        self._models = {
            model.kind: model
            for collector in services.registry.collectors.values()
            for model in collector.credentials
        }
        self._lifetime_s = lifetime_s
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}

    def get(
        self, ids: Collection[int], changed: Collection[int] = ()
    ) -> Mapping[int, CredentialOrError]:
        """Return the credentials of a batch. One that cannot be decrypted is an error for its users
        only.

        Credentials in `changed` are read again, so a rotated one is used from the next poll on.
        While SQL is away an expired entry still serves; a credential that was never read is a
        StoreError.
        """
        now_mono = time.monotonic()
        current: dict[int, CredentialOrError] = {}
        with self._lock:
            for credential_id in ids:
                entry = self._entries.get(credential_id)
                if entry and entry.expires_mono > now_mono and credential_id not in changed:
                    current[credential_id] = entry.credential

        missing = [credential_id for credential_id in ids if credential_id not in current]
        if missing:
            current.update(self._read(missing))
        return current

    def _read(self, ids: Sequence[int]) -> dict[int, CredentialOrError]:
        try:
            sealed = inventory_feed.credentials(self._engine, ids)
        except errors.StoreError as error:
            return self._extend(ids, error)
        fresh = {credential_id: self._open(sealed.get(credential_id)) for credential_id in ids}
        with self._lock:
            self._put(fresh)
        return fresh

    def _extend(self, ids: Sequence[int], error: errors.StoreError) -> dict[int, CredentialOrError]:
        """Use expired entries for one more lifetime: a silent database costs a time-out at each
        read.
        """
        with self._lock:  # one step: a credential that another batch reads meanwhile must stay
            expired = {
                credential_id: self._entries[credential_id].credential
                for credential_id in ids
                if credential_id in self._entries
            }
            self._put(expired)
        return {credential_id: expired.get(credential_id, error) for credential_id in ids}

    def _put(self, credentials: Mapping[int, CredentialOrError]) -> None:
        """Store credentials for one lifetime. The caller holds the lock."""
        expires_mono = time.monotonic() + self._lifetime_s
        for credential_id, credential in credentials.items():
            self._entries[credential_id] = _Entry(expires_mono, credential)

    def _open(self, sealed: inventory_feed.Sealed | None) -> CredentialOrError:
        if sealed is None:
            return errors.NotFound("the target's credential was removed")
        try:
            text = self._keyring.open(sealed.envelope, sealed.name, sealed.kind)
            credential = credentials.from_json(text, self._models)
        except errors.ConfigError as error:
            return error
        except Exception as error:  # noqa: BLE001  door: a plugin's model; its text may be the secret
            message = f'credential "{sealed.name}" cannot be read'
            return errors.InvalidInput(message, cause=type(error).__name__)
        for secret in credential.secrets():
            self._redactor.remember(secret)
        return credential


def without_unread(
    targets: Mapping[int, CachedTarget], credentials: Mapping[int, CredentialOrError]
) -> dict[int, CachedTarget]:
    """Leave out targets whose credential could not be read. Raises StoreError if none is left."""
    unread = {
        credential_id: error
        for credential_id, error in credentials.items()
        if isinstance(error, errors.StoreError)
    }
    ready = {
        target_id: cached
        for target_id, cached in targets.items()
        if cached.target.credential_id not in unread
    }
    if unread:
        error = next(iter(unread.values()))
        if not ready:
            raise error
        missing = len(targets) - len(ready)
        log.warning("credentials_not_read", targets=missing, error=str(error))
    return ready
