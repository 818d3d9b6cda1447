"""The port in an address of a device becomes an option of the one target that takes a port."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller.collectors import api
from poller.db.inventory import targets
from poller.db.inventory.targets import Target, TargetPort
from poller.domain.inventory import address_port
from poller.domain.inventory.address_port import Taker

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.registry import Registry


@dataclass(frozen=True, slots=True)
class PlacedPort:
    """The raw fields of new targets, one of them with the port, and a note that says so."""

    targets: Sequence[Mapping[str, Any]]
    notes: Sequence[str] = ()


def of_new(registry: Registry, port: int | None, wanted: Sequence[Mapping[str, Any]]) -> PlacedPort:
    """Give the port of a new device's address to one of its targets. Raises InvalidInput."""
    if port is None:
        return PlacedPort(wanted)
    if any(fields.get("collector") not in registry.collectors for fields in wanted):
        return PlacedPort(wanted)  # the check of the target reports it
    place, fields = of_row(registry, port, wanted)
    placed = [*wanted[:place], fields, *wanted[place + 1 :]]
    option = port_option(registry, fields["collector"])
    owner = TargetPort(fields.get("name") or fields["collector"], option, port)
    return PlacedPort(placed, [note(owner)])


def of_row(
    registry: Registry,
    port: int,
    wanted: Sequence[Mapping[str, Any]],
    stored: Sequence[Target] = (),
) -> tuple[int, dict[str, Any]]:
    """Return the place and the fields of the target that gets the port of an address.

    `wanted` are the raw fields of new or changed targets of a device, `stored` are its targets. A
    place behind `wanted` stands for a stored target that the fields do not name. Raises
    InvalidInput.
    """
    by_name = {target.name: target for target in stored}
    rows = [dict(fields) for fields in wanted]
    for fields in rows:
        old = by_name.pop(_name(fields), None)
        if old is not None and fields.get("collector") is None:
            fields.update(_unchanged(old, fields))
    rows += [_unchanged(old, {}) for old in by_name.values()]

    options = [port_option(registry, str(fields.get("collector"))) for fields in rows]
    takers = [Taker(place, _name(rows[place])) for place, option in enumerate(options) if option]
    place = address_port.owner(port, takers).place
    fields, option = rows[place], options[place]
    given = fields.get("options") or {}
    if isinstance(given, Mapping):  # else the check of the target reports it
        if place >= len(wanted) or wanted[place].get("options") is None:
            given = {**given, option: port}  # a stored port is replaced
        fields["options"] = address_port.with_port(given, port, option, fields["collector"])
    return place, fields


def _name(fields: Mapping[str, Any]) -> str:
    return str(fields.get("name") or fields.get("collector"))


def _unchanged(stored: Target, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a stored target. Its options stay unless others are given."""
    options = fields.get("options")
    return {
        "name": stored.name,
        "collector": stored.collector,
        "options": stored.options if options is None else options,
    }


def of_stored(services: Services, device: str, port: int | None) -> TargetPort | None:
    """Return the target of a stored device that gets the port of its new address.

    Raises InvalidInput.
    """
    if port is None:
        return None
    stored = targets.of_device(services.engine, device)
    options = [port_option(services.registry, target.collector) for target in stored]
    takers = [Taker(place, stored[place].name) for place, option in enumerate(options) if option]
    place, name = address_port.owner(port, takers)
    return TargetPort(name, options[place], port)


def note(placed: TargetPort) -> str:
    """Say where the port of an address is stored."""
    return f"port {placed.port} is the option {placed.option} of target {placed.target}"


def port_option(registry: Registry, collector: str) -> str:
    """Return the option of a collector that the port of an address sets; "" if there is none."""
    found = registry.collectors.get(collector)
    return api.port_option(found.Options) if found else ""
