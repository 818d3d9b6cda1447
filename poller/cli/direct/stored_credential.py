"""A stored credential for a command that polls by itself. The audit log says who opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from poller import bootstrap, errors

if TYPE_CHECKING:
    from poller.collectors.api import Collector
    from poller.collectors.credentials import Credential


def opened(name: str, purpose: str) -> Credential:
    """The decrypted credential, with its audit row. Raises NotFound, SecretKeyError, StoreError."""
    from poller.cli.inventory import inventory_database
    from poller.service import command_actor
    from poller.service.access import credential_opening

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    return credential_opening.opened(services, actor, name, purpose)


def opened_for(collector: Collector, name: str, purpose: str) -> Credential:
    """The same, of a kind that the collector takes. Raises InvalidInput for another kind."""
    credential = opened(name, purpose)
    if not isinstance(credential, tuple(collector.credentials)):
        accepted = ", ".join(model.kind for model in collector.credentials) or "no credential"
        raise errors.InvalidInput(
            f'collector {collector.name} cannot use credential "{name}" of kind {credential.kind}',
            hint=f"it takes {accepted}",
        )
    return credential
