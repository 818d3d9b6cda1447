"""What does this worker know of the targets it polls? One SQL statement per batch, and none for known ones."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Engine

from poller import errors
from poller.bootstrap import Services
from poller.collectors import credentials
from poller.collectors.credentials import Credential
from poller.collectors.registry import Registry
from poller.db.inventory import inventory_feed
from poller.domain.inventory.poll_target import PollTarget
from poller.observability import logs

log = logs.get(__name__)

#: A target that was not polled here for so long makes room for another.
FORGET_S = 3600.0
#: Options that take longer to be checked are told of while it lasts: nobody can end a validator, and its batch waits.
SLOW_S = 5.0


@dataclass(slots=True)
class Known:
    """A target, its validated options (or what is wrong with them), and what its collector remembers."""

    target: PollTarget
    version: int  # the board's, when it was read
    options: Any = None
    problem: errors.PollerError | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    used_at: float = 0.0  # on the monotonic clock
    is_new: bool = True  # nobody has it yet: whoever gets it first asks for its credential again


class Targets:
    """What is remembered of targets, within a limit. An entry older than the version the board asks for is read again.

    When it is full, those that are there stay, as long as they are polled here. Targets come in turns: to make room
    for each new one would be to forget everybody shortly before their next poll.
    """

    def __init__(self, engine: Engine, registry: Registry, limit: int) -> None:
        self._engine = engine
        self._registry = registry
        self._limit = limit
        self._lock = threading.Lock()
        self._known: OrderedDict[int, Known] = (
            OrderedDict()
        )  # the one that was not used for the longest time first
        self._was_full = False

    def unknown(self, ids: Iterable[int]) -> int:
        """How many of these were never polled here, or are not remembered."""
        with self._lock:
            return sum(target_id not in self._known for target_id in ids)

    def get(self, versions: Mapping[int, int], now: float) -> tuple[dict[int, Known], set[int]]:
        """The targets of a batch, given the version the board has of each; removed ones are missing.

        Also says which of their credentials may have changed: those of targets that were read anew. While SQL is away
        those that would have to be read are missing, too; raises StoreError if that is all of them.
        """
        with self._lock:
            found = {
                i: known
                for i, v in versions.items()
                if (known := self._known.get(i)) and known.version >= v
            }
            for target_id, known in found.items():
                known.used_at = now
                self._known.move_to_end(target_id)
        missing = [i for i in versions if i not in found]
        fresh: dict[int, Known] = {}
        try:
            fresh = self._read(missing, versions, now) if missing else {}
        except errors.StoreError as error:
            if not found:
                raise
            log.warning("targets_not_read", targets=len(missing), error=str(error))
        given = {**found, **fresh}
        new = [known for known in given.values() if known.is_new]
        for known in new:
            known.is_new = False
        return given, {known.target.credential_id for known in new} - {None}  # type: ignore[return-value]

    def _read(
        self, ids: Iterable[int], versions: Mapping[int, int], now: float
    ) -> dict[int, Known]:
        """Each is remembered as soon as it is prepared: if that takes too long, the next attempt goes on from there."""
        rows = inventory_feed.poll_targets(self._engine, ids)
        fresh: dict[int, Known] = {}
        with _watched(rows, fresh):
            for target_id, target in rows.items():
                known = self._prepared(target, max(versions[target_id], target.version))
                self._remember(known, now)
                fresh[target_id] = known
        return fresh

    def _remember(self, known: Known, now: float) -> None:
        known.used_at = now
        with self._lock:
            if known.target.id in self._known or self._has_room(now):
                self._known[known.target.id] = known
                self._known.move_to_end(known.target.id)

    def _has_room(self, now: float) -> bool:
        """Or makes some, at the cost of who is polled elsewhere by now."""
        if len(self._known) < self._limit:
            return True
        if now - next(iter(self._known.values())).used_at > FORGET_S:
            self._known.popitem(last=False)
            return True
        if not self._was_full:
            self._was_full = True
            log.warning(
                "target_cache_full",
                limit=self._limit,
                hint="raise POLLER_TARGET_CACHE, or add workers",
            )
        return False

    def _prepared(self, target: PollTarget, version: int) -> Known:
        try:
            return Known(target, version, self._registry.options(target.collector, target.options))
        except errors.ConfigError as error:
            return Known(target, version, problem=error)


@contextmanager
def _watched(rows: Mapping[int, PollTarget], fresh: Mapping[int, Known]) -> Iterator[None]:
    """Says whose options these are when it takes long: all that is seen of it otherwise are polls that come late."""

    def tell() -> None:
        at = next((target for target_id, target in rows.items() if target_id not in fresh), None)
        if at is not None:
            log.warning(
                "options_checked_slowly",
                collector=at.collector,
                target=f"{at.device}/{at.name}",
                seconds=SLOW_S,
                done=len(fresh),
                of=len(rows),
                fix="the validators of a collector's Options must not wait for anything",
            )

    timer = threading.Timer(SLOW_S, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Secrets:
    """Decrypted credentials, kept briefly and only in memory. One SQL statement per batch, at most."""

    def __init__(self, services: Services, keep_s: float) -> None:
        self._engine = services.engine
        self._keyring = services.keyring
        self._redactor = services.redactor
        self._models = {
            m.kind: m for c in services.registry.collectors.values() for m in c.credentials
        }
        self._keep_s = keep_s
        self._lock = threading.Lock()
        self._opened: dict[int, tuple[float, Credential | errors.PollerError]] = {}

    def get(
        self, ids: Collection[int], changed: Collection[int] = ()
    ) -> dict[int, Credential | errors.PollerError]:
        """The credentials of a batch; one that does not open is its error, and harms only its users.

        What may have changed is read again: a rotated credential is used from the next poll on. While SQL is away what
        was read before will do, however old; what never was is a StoreError.
        """
        now = time.monotonic()
        with self._lock:
            entries = {i: entry for i in ids if (entry := self._opened.get(i))}
        found = {
            i: item for i, (until, item) in entries.items() if until > now and i not in changed
        }
        missing = [i for i in ids if i not in found]
        if missing:
            found.update(self._fetch(missing))
        return found

    def _fetch(self, ids: Sequence[int]) -> dict[int, Credential | errors.PollerError]:
        try:
            sealed = inventory_feed.credentials(self._engine, ids)
        except errors.StoreError as error:
            return self._had(ids, error)
        fresh = {i: self._open(sealed.get(i)) for i in ids}
        until = time.monotonic() + self._keep_s
        with self._lock:
            self._opened.update({i: (until, item) for i, item in fresh.items()})
        return fresh

    def _had(
        self, ids: Sequence[int], error: errors.StoreError
    ) -> dict[int, Credential | errors.PollerError]:
        """For as long again: a database that is silent takes its time whenever it is asked."""
        until = time.monotonic() + self._keep_s
        with self._lock:
            had = {i: self._opened[i][1] for i in ids if i in self._opened}
            self._opened.update({i: (until, item) for i, item in had.items()})
        return {i: had.get(i, error) for i in ids}

    def _open(self, sealed: inventory_feed.Sealed | None) -> Credential | errors.PollerError:
        if sealed is None:
            return errors.NotFound("the target's credential was removed")
        try:
            opened = credentials.from_json(
                self._keyring.open(sealed.envelope, sealed.name), self._models
            )
        except errors.ConfigError as error:
            return error
        except Exception as error:  # noqa: BLE001  a plugin's model may raise anything, and its text may be the secret
            return errors.InvalidInput(
                f'credential "{sealed.name}" cannot be read', cause=type(error).__name__
            )
        for secret in opened.secrets():
            self._redactor.remember(secret)
        return opened
