"""Which collectors are asked about an address, with which options and which logins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.domain.inventory import address_port
from poller.service.discovery.address_discovery import NO_LOGIN, Login

if TYPE_CHECKING:
    from poller.collectors.api import Collector
    from poller.collectors.registry import Registry


def collectors(registry: Registry, names: Sequence[str] = ()) -> list[Collector]:
    """The named collectors, else all that can discover. Raises InvalidInput for one that cannot."""
    from poller.collectors.api import Discovers

    able = {}
    for name, each in registry.collectors.items():
        if isinstance(each, Discovers):
            able[name] = each

    for name in names:
        if registry.get(name) and name not in able:
            raise errors.InvalidInput(
                f"collector {name} cannot discover", hint="these can: " + ", ".join(able)
            )

    if not able:
        raise errors.InvalidInput("no installed collector can discover", hint="poller collectors")

    unique = dict.fromkeys(names or able)
    return [able[name] for name in unique]


def options(
    registry: Registry,
    chosen: Sequence[Collector],
    port: int | None,
    single: Collector | None = None,
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The checked options by collector; one whose required options are missing is absent.

    Each collector that takes a port gets that of the address. `given` are options of the single
    collector that is asked.
    """
    from poller.collectors import api

    found = {}
    for each in chosen:
        port_option = api.port_option(each.Options)
        values: Mapping[str, Any] = given or {}
        if port_option or single:
            values = address_port.with_port(values, port, port_option, each.name)
        if given or not _has_required_option(each):
            found[each.name] = registry.checked_options(each.name, values)
    return found


def logins(collector: Collector, opened: Sequence[Login], checked: Any) -> list[Login]:
    """The logins that a collector can use; NO_LOGIN if it needs none with these options."""
    from poller.collectors.api import needs_credential

    kinds = {model.kind for model in collector.credentials}
    suitable = [login for login in opened if login.kind in kinds]
    if suitable:
        return suitable
    needed = checked is not None and needs_credential(collector, checked)
    return [] if needed else [NO_LOGIN]


def in_order(chosen: Sequence[Collector], tried: Mapping[str, Sequence[Login]]) -> list[Collector]:
    """The collectors with a login first: a login reads more."""
    return sorted(chosen, key=lambda each: list(tried[each.name]) == [NO_LOGIN])


def _has_required_option(collector: Collector) -> bool:
    return any(field.is_required() for field in collector.Options.model_fields.values())
