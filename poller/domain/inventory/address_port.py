"""The port in an address of a device: the option of the one target that the port belongs to.

A device has an address without a port, because its targets have different ports, or none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from poller import errors


class Taker(NamedTuple):
    """A target that a port could belong to: its place among the targets, and its name."""

    place: int
    name: str


def owner(port: int, takers: Sequence[Taker]) -> Taker:
    """Return the target that the port of an address belongs to. Raises InvalidInput.

    `takers` are the targets of the device whose collectors take a port.
    """
    if len(takers) == 1:
        return takers[0]
    if not takers:
        raise errors.InvalidInput(
            f"the address has the port {port}, and no target of the device takes a port from it",
            hint="leave the port out, or name a collector that takes it: --collector snmp",
        )
    names = " and ".join(taker.name for taker in takers)
    raise errors.InvalidInput(
        f"the address has the port {port}, and the targets {names} have a port each",
        hint=f"leave it out of the address, and give it to one target: -o port={port}",
    )


def with_port(
    options: Mapping[str, Any], port: int | None, option: str, collector: str
) -> dict[str, Any]:
    """Return options with the port of the address in the collector's option for it.

    `option` is empty if the collector takes no port. Raises InvalidInput, also if the options have
    another port.
    """
    if port is None:
        return dict(options)
    if not option:
        raise errors.InvalidInput(
            f"the address has the port {port}, and collector {collector} takes no port from it",
            hint="leave the port out of the address",
        )
    given = options.get(option)
    if given is not None and str(given) != str(port):
        raise errors.InvalidInput(
            f"the address has the port {port}, and the option {option} is {given}",
            hint="give the port once",
        )
    return {**options, option: port}
