"""Decrypted credentials, kept only in memory: at most one SQL statement for a batch, and none that
a poll of a known credential waits for.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from poller import errors
from poller.bootstrap import Services
from poller.collectors import credentials
from poller.collectors.credentials import Credential
from poller.db import bounded_reads
from poller.db.bounded_reads import BoundedReads
from poller.db.inventory import inventory_feed
from poller.metering import process_metrics
from poller.observability import logs
from poller.workers.batch.target_cache import CachedTarget
from poller.workers.inventory.inventory_copy import InventoryCopy

log = logs.get(__name__)

#: A decrypted credential, or the error that keeps it from being decrypted.
CredentialOrError = Credential | errors.PollerError
#: Encrypted credentials by id, as SQL has them.
_SealedById = Mapping[int, inventory_feed.Sealed]


@dataclass(slots=True)
class _Entry:
    credential: CredentialOrError
    version: int
    read_mono: float
    refresh_mono: float  # when the credential is due to be read again
    #: Since when it has to be read before a poll, because it may have been rotated; 0 is never.
    outdated_mono: float = 0.0


class CredentialCache:
    """A bounded cache of credentials by id, safe for threads. The least recently used one gives
    way.

    A known credential is used at once and read again beside the poll every `secret_cache_s`. One
    that was rotated is read before the poll. While SQL does not answer, a known credential serves
    for up to `stale_limit_s` after it was read, and any other one is that of the copy of the
    inventory.
    """

    def __init__(
        self,
        services: Services,
        reads: BoundedReads | None = None,
        copy: InventoryCopy | None = None,
    ) -> None:
        settings = services.settings
        self._engine = services.engine
        self._keyring = services.keyring
        self._redactor = services.redactor
        self._models = {
            model.kind: model
            for collector in services.registry.collectors.values()
            for model in collector.credentials
        }
        self._reads = reads or BoundedReads()
        self._copy = copy
        self._limit = settings.secret_cache
        self._lifetime_s = settings.secret_cache_s
        self._stale_limit_s = settings.stale_limit_s
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()  # least recently used first
        self._due: set[int] = set()  # to be read again, once the running refresh has ended
        self._is_refreshing = False
        self.hits = 0
        self.misses = 0

    def get(
        self, ids: Collection[int], changed: Collection[int] = ()
    ) -> Mapping[int, CredentialOrError]:
        """Return the credentials of a batch. One that cannot be decrypted is an error for its users
        only.

        Credentials in `changed` are read again, so a rotated one is used from the next poll on. A
        credential that is not known and cannot be read is a StoreError.
        """
        now_mono = time.monotonic()
        with self._lock:
            known = self._known(ids, now_mono)
            current = {
                credential_id: entry.credential
                for credential_id, entry in known.items()
                if credential_id not in changed and not entry.outdated_mono
            }
            missing = [credential_id for credential_id in ids if credential_id not in current]
            self.hits += len(current)
            self.misses += len(missing)
            process_metrics.credential_cache.add("hit", by=len(current))
            process_metrics.credential_cache.add("miss", by=len(missing))
            self._due.update(each for each in current if known[each].refresh_mono <= now_mono)

        if self._due:
            self._refresh()
        if missing:
            current.update(self._read(missing, known))
        return current

    def _known(self, ids: Collection[int], now_mono: float) -> dict[int, _Entry]:
        """The entries that may be used. The caller holds the lock."""
        known = {}
        for credential_id in ids:
            entry = self._entries.get(credential_id)
            if entry is not None and now_mono - entry.read_mono <= self._stale_limit_s:
                self._entries.move_to_end(credential_id)
                known[credential_id] = entry
        return known

    def _read(
        self, ids: Sequence[int], known: Mapping[int, _Entry]
    ) -> dict[int, CredentialOrError]:
        """Read credentials while the poll waits, but not for long."""
        asked_mono = time.monotonic()
        query = partial(inventory_feed.credentials, self._engine, ids)
        can_only_wait = not known and (self._copy is None or self._copy.current_mono is None)
        patience_s = bounded_reads.COLD_PATIENCE_S if can_only_wait else bounded_reads.PATIENCE_S
        try:
            sealed = self._reads.read(query, patience_s, partial(self._put, ids, asked_mono))
        except errors.StoreError as error:
            with self._lock:  # the next poll tries to read these credentials again
                for credential_id in known.keys() & set(ids):
                    known[credential_id].outdated_mono = asked_mono
            found: dict[int, CredentialOrError] = dict.fromkeys(ids, error)
            found.update({each: known[each].credential for each in ids if each in known})
            found.update(self._take_from_copy([each for each in ids if each not in known]))
            return found
        return self._put(ids, asked_mono, sealed)

    def _take_from_copy(self, ids: Sequence[int]) -> dict[int, CredentialOrError]:
        """Cache credentials as the copy has them, unless it is too old."""
        copied_mono = self._copy.current_mono if self._copy is not None else None
        if self._copy is None or copied_mono is None:
            return {}
        if time.monotonic() - copied_mono > self._stale_limit_s:
            return {}
        sealed = self._copy.credentials(ids)
        return self._put(list(sealed), copied_mono, sealed)

    def _refresh(self) -> None:
        """Read beside the polls what is due, in one query at a time."""
        with self._lock:
            if self._is_refreshing or not self._due:
                return
            self._is_refreshing = True
            ids = list(self._due)
            self._due.clear()
        query = partial(inventory_feed.credentials, self._engine, ids)
        self._reads.read_beside(query, partial(self._end_refresh, ids, time.monotonic()))

    def _end_refresh(
        self, ids: Sequence[int], asked_mono: float, refreshed: Future[_SealedById]
    ) -> None:
        error = refreshed.exception()
        if error is None:
            self._put(ids, asked_mono, refreshed.result())
        else:
            log.warning("credentials_not_refreshed", credentials=len(ids), error=str(error))
            self._postpone(ids)
        with self._lock:
            self._is_refreshing = False
        self._refresh()

    def _postpone(self, ids: Sequence[int]) -> None:
        """Try again after one lifetime: SQL that is away is not asked by every batch."""
        retry_mono = time.monotonic() + self._lifetime_s
        with self._lock:
            self._due.update(ids)
            for credential_id in self._due:
                if credential_id in self._entries:
                    self._entries[credential_id].refresh_mono = retry_mono
            self._due.clear()

    def _put(
        self, ids: Sequence[int], asked_mono: float, sealed: _SealedById
    ) -> dict[int, CredentialOrError]:
        """Store what a query that was sent at `asked_mono` found. Returns the credentials to use:
        a later query may have found newer ones meanwhile.
        """
        fresh = [(each, self._open(sealed.get(each))) for each in ids]
        found = {}
        refresh_mono = time.monotonic() + self._lifetime_s
        with self._lock:
            for credential_id, credential in fresh:
                row = sealed.get(credential_id)
                entry = _Entry(credential, row.version if row else 0, asked_mono, refresh_mono)
                before = self._entries.get(credential_id)
                if before is not None and row is not None and before.version > row.version:
                    entry = before
                elif before is not None and before.outdated_mono > asked_mono:
                    entry.outdated_mono = before.outdated_mono
                self._entries[credential_id] = entry
                self._entries.move_to_end(credential_id)
                found[credential_id] = entry.credential
            self._due.difference_update(found)
            while self._entries and self._is_over(next(iter(self._entries.values()))):
                self._entries.popitem(last=False)
        return found

    def _is_over(self, oldest: _Entry) -> bool:
        """Whether the least recently used credential gives way: the cache is full, or it is too old
        to be used.
        """
        is_too_old = time.monotonic() - oldest.read_mono > self._stale_limit_s
        return is_too_old or len(self._entries) > self._limit

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
