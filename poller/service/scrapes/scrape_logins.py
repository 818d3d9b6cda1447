"""The login that a scrape names: a credential of the vault, an entry of a module file, or public.

A scrape names a credential and never carries one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.collectors.snmp.modules import module_catalog, module_files
from poller.db.scrapes import scraped_devices
from poller.db.scrapes.scraped_devices import ScrapedDevice
from poller.domain.access.actor import Actor

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Logins that the files of snmp_exporter have: the community `public`, by version.
PUBLIC = {"public_v1": "1", "public_v2": "2c"}
SNMPV3 = "snmpv3"


@dataclass(frozen=True, slots=True)
class ScrapeLogin:
    """A login by name. `file_auth` is an entry of the files of setting `snmp_config`."""

    credential_id: int | None = None
    kind: str = ""
    public_version: str = ""
    file_auth: str = ""


def find(
    services: Services,
    actor: Actor,
    name: str,
    device: ScrapedDevice | None,
    kinds: Collection[str],
) -> ScrapeLogin:
    """Return the login of a name. Raises InvalidInput in snmp_exporter's words, NotAllowed.

    A token of one site uses the credentials of its devices only: with another one it could send
    every stored secret to a device of its choice.
    """
    own = _own_names(device)
    if actor.site is not None and name not in own:
        raise errors.NotAllowed(f"auth '{name}' is not used by this device")
    found = scraped_devices.credential_ids(services.engine, [name]).get(name)
    if found is not None and found[1] in kinds:
        return ScrapeLogin(found[0], found[1])
    if found is not None:
        raise errors.InvalidInput(
            f"auth '{name}' is a credential of kind {found[1]}", f"needed is {' or '.join(kinds)}"
        )
    return _of_files(services, name)


def _own_names(device: ScrapedDevice | None) -> set[str]:
    if device is None:
        return set()
    return {device.credential, *(target.credential for target in device.targets)} - {""}


def _of_files(services: Services, name: str) -> ScrapeLogin:
    config = services.settings.snmp_config
    if config and name in module_files.library(config).auth_names():
        kind = module_catalog.auth(name, config).credential.kind
        return ScrapeLogin(kind=kind, file_auth=name)
    if name in PUBLIC:
        return ScrapeLogin(kind="community", public_version=PUBLIC[name])
    raise errors.InvalidInput(f"Unknown auth '{name}'")
