"""Actions on credentials: list, add, rotate, remove, change the key.

A secret goes in and never comes out: no function here returns one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors.credentials import BUILT_IN, Credential
from poller.db.access import audit_rows
from poller.db.inventory import credential_rows
from poller.db.inventory.credential_rows import StoredCredential
from poller.db.inventory.inventory_feed import Author
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.inventory import naming
from poller.security import vault, vault_keys
from poller.security.vault import Keyring

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: A secret below this length is noted when it is stored.
SHORT_SECRET = 8

#: The actions of the audit log that give a credential its secret.
_CHANGES = ("credential.add", "credential.rotate")

#: Returns the typed or sent credential of a kind; called after all other checks.
ReadSecret = Callable[[type[Credential]], Credential]


@dataclass(frozen=True, slots=True)
class Rotated:
    """A credential after its change: its new kind, and the number of targets that use it."""

    kind: str
    targets: int
    notes: list[str]


@dataclass(frozen=True, slots=True)
class NewKey:
    """The key that all credentials are encrypted with now."""

    credentials: int
    key_id: str
    source: str


def listing(services: Services, actor: Actor) -> list[StoredCredential]:
    """Return the credentials by name, without secrets; of one site those that are used there."""
    found = credential_rows.listing(services.engine, actor.site)
    if actor.site is None:
        return found
    used = credential_rows.used_at(services.engine, actor.site)
    return [credential for credential in found if credential.name in used]


def show(services: Services, actor: Actor, name: str) -> StoredCredential:
    """Return one credential without its secret. Raises NotFound, also for one of other sites."""
    if actor.site is None:
        return credential_rows.show(services.engine, name)
    for credential in listing(services, actor):
        if credential.name == name:
            return credential
    raise errors.NotFound(f'no credential named "{name}" at site "{actor.site}"')


def last_authors(services: Services, actor: Actor, names: Sequence[str]) -> dict[str, str]:
    """Return who changed each credential last, for those who may read the audit log."""
    if actor.site is not None or not actor.may(Scope.ADMIN):
        return {}
    return audit_rows.last_authors(services.engine, _CHANGES, names)


def models(services: Services) -> dict[str, type[Credential]]:
    """Return the models of all kinds, built in and of plugins, by kind."""
    found: dict[str, type[Credential]] = {}
    for collector in services.registry.collectors.values():
        found |= {model.kind: model for model in collector.credentials}
    return {**found, **BUILT_IN}


def model(services: Services, kind: str) -> type[Credential]:
    """Return the model of a kind. Plugins are loaded only for a kind that is not built in.

    Raises InvalidInput.
    """
    if kind in BUILT_IN:
        return BUILT_IN[kind]
    known = models(services)
    if kind not in known:
        hint = "use " + ", ".join(sorted(known))
        raise errors.InvalidInput(f'unknown credential kind "{kind}"', hint=hint)
    return known[kind]


def add(services: Services, author: Author, name: str, kind: str, read: ReadSecret) -> list[str]:
    """Store a new credential. Returns notes about its secret.

    Raises InvalidInput, AlreadyExists, SecretKeyError. The secret is read after the name is
    checked, so that nobody types one in vain.
    """
    naming.checked_name(name, "credential name")
    if name in credential_rows.kinds(services.engine):
        raise errors.AlreadyExists(
            f'there is a credential named "{name}" already', hint=f"poller credential rotate {name}"
        )
    secret = read(model(services, kind))
    sealed = _sealed(services, secret, name)
    silent = Author(author.actor)  # nothing uses it yet, so there is no worker to notify
    credential_rows.add(services.engine, name, secret.kind, sealed, silent)
    return _notes(secret, name)


def rotate(
    services: Services,
    author: Author,
    name: str,
    kind: str | None,
    read: ReadSecret,
    expected: str | None = None,
) -> Rotated:
    """Replace a secret; workers use the new one with their next poll. None keeps the kind.

    Raises InvalidInput, NotFound, SecretKeyError, EditConflict if it is not the expected version.
    """
    present = credential_rows.kind(services.engine, name)
    secret = read(model(services, kind or present))
    sealed = _sealed(services, secret, name)
    used = credential_rows.rotate(services.engine, name, secret.kind, sealed, author, expected)
    return Rotated(secret.kind, used, _notes(secret, name))


def remove(services: Services, author: Author, name: str, expected: str | None = None) -> None:
    """Remove a credential that nothing uses. Raises InvalidInput, NotFound, EditConflict."""
    credential_rows.remove(services.engine, name, Author(author.actor), expected)


def from_fields(fields: Mapping[str, Any]) -> ReadSecret:
    """Return the reader of a credential that was sent as fields."""

    def read(wanted: type[Credential]) -> Credential:
        return wanted.from_fields(dict(fields))

    return read


def _sealed(services: Services, secret: Credential, name: str) -> str:
    """Return the encrypted secret. Raises SecretKeyError if other credentials have another key.

    Without this check only workers would detect a wrong key.
    """
    ring = services.keyring
    ring.refuse_foreign(credential_rows.envelopes(services.engine))
    return ring.seal(secret.to_json(), name, secret.kind)


def _notes(secret: Credential, name: str) -> list[str]:
    """Note secrets that are guessed quickly; the shortest are masked in their own polls only."""
    is_long = all(len(text) >= SHORT_SECRET for text in secret.secrets())
    return [] if is_long else [short_secret_note(name)]


def short_secret_note(name: str) -> str:
    """Return the note about a secret that is guessed quickly."""
    return (
        f"this secret has fewer than {SHORT_SECRET} characters, so it can be guessed, and poller "
        "hides it only in messages about polls that use it; set a longer one on the device, then "
        f"store it: poller credential rotate {name}"
    )


def rotate_key(services: Services, author: Author) -> NewKey:
    """Encrypt all credentials with a new key; the old key stays in the key file, for backups.

    Raises SecretKeyError if a credential cannot be opened, or the environment has no second key.
    """
    if services.settings.secret_key:
        ring = services.keyring
        _refuse_single_key(ring)
    else:
        # A credential that does not open now would not open with the new key either.
        credential_rows.reseal(services.engine, partial(_opened, services.keyring))
        ring = _with_new_key(services.settings.home)

    convert = partial(_resealed, ring)
    count = credential_rows.reseal(services.engine, convert, author, ring.first_id)
    return NewKey(count, ring.first_id, ring.source)


def _with_new_key(home: Path) -> Keyring:
    """Write a new first key to disk, before any credential is encrypted with it.

    In this order every credential stays readable after a crash: the old key is still in the file.
    """
    path = home / vault_keys.FILE_NAME
    vault_keys.replace(path, [vault_keys.new(), *vault_keys.read(path)])
    return Keyring.load(None, home)


def _opened(ring: Keyring, name: str, kind: str, envelope: str) -> str:
    """Return the same envelope. Raises SecretKeyError if the keyring cannot open it."""
    ring.open(envelope, name, kind)
    return envelope


def _resealed(ring: Keyring, name: str, kind: str, envelope: str) -> str:
    """Return the envelope sealed with the keyring's first key, in the current version."""
    if vault.is_current(envelope) and vault.sealed_with(envelope) == ring.first_id:
        return envelope
    return ring.seal(ring.open(envelope, name, kind), name, kind)


def _refuse_single_key(ring: Keyring) -> None:
    if len(ring.ids) < 2:
        variable = vault_keys.ENVIRONMENT
        raise errors.SecretKeyError(
            f"{variable} holds one key only, so there is no new one to change to",
            hint=f"set {variable}=NEW,OLD everywhere (openssl rand -base64 32 makes one), "
            "then repeat",
        )
