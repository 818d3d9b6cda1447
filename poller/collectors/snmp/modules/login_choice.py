"""Who are we to the device? The target's own credential, or a login of its module file; and which version we speak."""

from __future__ import annotations

from dataclasses import dataclass

from poller import errors
from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.modules import module_catalog
from poller.collectors.snmp.modules.module_set import Profile
from poller.collectors.snmp.options import SnmpOptions


@dataclass(frozen=True, slots=True)
class Login:
    credential: Credential | None
    version: str  # of the protocol, with a community
    context: str = ""


def choose(options: SnmpOptions, own: Credential | None, profile: Profile) -> Login:
    """`own` is the target's credential. Raises OptionsUnusable when the file has no such login."""
    version = options.protocol(profile.version)
    if own is not None or not options.auth:
        return Login(own, version, options.context)
    try:
        found = module_catalog.auth(options.auth, options.config)
    except errors.ConfigError as error:
        raise errors.OptionsUnusable(error.message, error.cause, error.hint) from None
    context = options.context or (found.context if isinstance(found.credential, SnmpV3) else "")
    return Login(found.credential, "1" if found.version == 1 else version, context)
