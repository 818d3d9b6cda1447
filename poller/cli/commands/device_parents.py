"""`poller device parent` and `poller device parents`: through which device each one is reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.arguments.target_arguments import device_argument
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.presentation import formatting
from poller.service import command_actor

if TYPE_CHECKING:
    from poller.bootstrap import Services

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[DEVICE...]",
        help="With --accept: only of these devices.",
        autocompletion=completion.devices,
    ),
]

_STORED = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("PARENT", "parent", fit=Fit.WHOLE),
    column("FROM", "source", fit=Fit.WHOLE),
)
_SUGGESTED = (
    column("DEVICE", "device", fit=Fit.WHOLE),
    column("PARENT", "parent", fit=Fit.WHOLE),
    column("STATE", "state", fit=Fit.WHOLE),
    column("NOW", "stored", spare=1),
    column("LINK", "link", fit=Fit.WHOLE, spare=2),
    column("WHY", "reason", fit=Fit.REST),
)


def parent(
    name: Annotated[str, device_argument("DEVICE")],
    new_parent: Annotated[
        str | None,
        typer.Argument(
            metavar="[PARENT]",
            help="The device through which it is reached.",
            autocompletion=completion.devices,
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="It has no parent any more.")] = False,
    as_json: Json = False,
) -> None:
    """Show the parent of a device, or give it one: while the parent is down, it tells nobody."""
    from poller.service.inventory import device_actions

    if none and new_parent is not None:
        raise errors.InvalidInput(
            "a parent and --none do not go together", hint=f"poller device parent {name} --none"
        )
    services = bootstrap.services()
    inventory_database.database(services)
    if new_parent is None and not none:
        _show_parent(services, name, as_json)
        return
    fields = {"parent": "" if none else new_parent}
    done = device_actions.edit(services, inventory_database.author(), name, fields)
    text = f"{name} has no parent" if none else f"the parent of {name} is {new_parent}"
    render.changed(text, "poller.device/1", asdict(done.device), as_json)


def parents(
    names: Names = None,
    suggested: Annotated[
        bool, typer.Option("--suggested", help="What LLDP and CDP neighbours suggest.")
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Store suggestions for devices without a parent.")
    ] = False,
    core: Annotated[
        list[str] | None,
        typer.Option(
            "--core",
            help="The device that all others are reached through. Repeat for more.",
            autocompletion=completion.devices,
        ),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """List parents, or those that neighbours suggest; accept suggestions."""
    if not (suggested or accept) and (names or core):
        raise errors.InvalidInput(
            "devices and --core belong to --suggested", hint="poller device parents --suggested"
        )
    services = bootstrap.services()
    inventory_database.database(services)
    if accept:
        _accept(services, names or (), core or (), yes, as_json)
    elif suggested:
        _list_suggested(services, names or (), core or (), as_json)
    else:
        _list_stored(services, as_json)


def _show_parent(services: Services, name: str, as_json: bool) -> None:
    from poller.service.inventory import device_actions

    device, _ = device_actions.show(services, command_actor.of_command(), name)
    if as_json:
        item = {"device": name, "parent": device.parent}
        render.document("poller.device.parent/1", item)
    elif device.parent:
        render.echo(device.parent)
    else:
        render.note(f"{name} has no parent: poller device parent {name} PARENT")


def _list_stored(services: Services, as_json: bool) -> None:
    from poller.service.alerts import parent_actions

    items = [
        each._asdict() for each in parent_actions.listing(services, command_actor.of_command())
    ]
    render.listing("poller.device.parents/1", items, _STORED, as_json)
    if not items and not as_json:
        render.note("no device has a parent: poller device parents --suggested")


def _list_suggested(
    services: Services, names: Sequence[str], cores: Sequence[str], as_json: bool
) -> None:
    from poller.service.alerts import parent_actions

    found = parent_actions.suggestions(services, command_actor.of_command(), cores)
    items = [asdict(each) for each in found.items if not names or each.device in names]
    more: dict[str, Any] = {
        "devices_read": found.devices_read,
        "unknown_neighbours": found.unknown_neighbours,
    }
    render.listing("poller.device.parents.suggested/1", items, _SUGGESTED, as_json, **more)
    if as_json:
        return
    if not found.devices_read:
        render.note(
            "no device has stored neighbours: "
            "poller target add DEVICE --collector snmp --name neighbours -o modules=lldp "
            "--interval 1h"
        )
        return
    read = formatting.counted(found.devices_read, "device")
    unknown = formatting.counted(found.unknown_neighbours, "neighbour")
    render.note(f"from the neighbours of {read}; {unknown} are no device here")
    if any(item["state"] == "new" for item in items):
        render.note("to store the new ones: poller device parents --suggested --accept")


def _accept(
    services: Services, names: Sequence[str], cores: Sequence[str], yes: bool, as_json: bool
) -> None:
    from poller.service.alerts import parent_actions
    from poller.service.alerts.parent_actions import SuggestionState

    actor, author = command_actor.of_command(), inventory_database.author()
    found = parent_actions.suggestions(services, actor, cores)
    count = sum(each.state is SuggestionState.NEW for each in found.items)
    number = len(names) or count
    if number:
        confirm(f"store {formatting.counted(number, 'parent')}", number, yes)
    done = parent_actions.accept(services, author, actor, names, cores)
    items = [asdict(each) for each in done]
    if as_json:
        render.document("poller.device.parents.accepted/1", {"items": items})
        return
    render.listing("", items, _SUGGESTED, as_json=False)
    render.note(f"stored {formatting.counted(len(items), 'parent')}")
