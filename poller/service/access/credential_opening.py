"""Opens a stored credential for a person. The audit row is written before the secret is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poller import errors
from poller.collectors import credentials
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, lookup
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.service.access import audit_log

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.credentials import Credential


def opened(services: Services, actor: Actor, name: str, purpose: str) -> Credential:
    """Return a decrypted credential. Raises NotFound, SecretKeyError, StoreError.

    `purpose` is what the credential is opened for, such as `discover 192.0.2.1`.
    """
    engine = services.engine
    with sql.single_read(engine) as conn:
        key = lookup.credential_id(conn, name)
    sealed = inventory_feed.credential(engine, key or 0)
    if sealed is None:
        raise errors.NotFound(f'no credential named "{name}"', hint="poller credential list")

    models = dict(credentials.BUILT_IN)
    for collector in services.registry.collectors.values():
        for model in collector.credentials:
            models[model.kind] = model

    entry = AuditEntry("credential.open", name, after={"for": purpose})
    audit_log.record(services, actor, entry)
    text = services.keyring.open(sealed.envelope, sealed.name, sealed.kind)
    return credentials.from_json(text, models)
