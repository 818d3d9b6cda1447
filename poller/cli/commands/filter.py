"""`poller filter`: views of the list of devices that were saved under a name."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from poller import bootstrap
from poller.cli.arguments.filter_options import Where
from poller.cli.command_tree import Listing
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.domain.fleet.device_sort import DeviceSort
from poller.service import command_actor

app = typer.Typer(cls=Listing, help="Saved filters of the list of devices, with their orders.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the filter.")]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("FILTER", "where", fit=Fit.WHOLE),
    column("SORT", "sort"),
    column("OWNER", "owner"),
    column("SHARED", "is_shared"),
)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the saved filters of all owners."""
    from poller.service.fleet import filter_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    found = filter_actions.listing(services, actor, everyone=True)
    items = [asdict(each) for each in found]
    render.listing("poller.filter.list/1", items, _COLUMNS, as_json)
    if not items and not as_json:
        render.note("no saved filter yet: poller filter save NAME --where state:failing")


@app.command("save")
def save(
    name: Name,
    where: Where = None,
    sort: Annotated[DeviceSort, typer.Option(help="The order of the list.")] = DeviceSort.NAME,
    shared: Annotated[bool, typer.Option("--shared", help="Others see it, too.")] = False,
    as_json: Json = False,
) -> None:
    """Save a filter; an own one of that name is replaced."""
    from poller.service.fleet import filter_actions

    services = bootstrap.services()
    inventory_database.database(services)
    actor = command_actor.of_command()
    saved = filter_actions.save(services, actor, name, where or "", sort, shared=shared)
    render.changed(f"saved filter {saved.name}", "poller.filter/1", asdict(saved), as_json)


@app.command("rm")
def remove(
    name: Name,
    owner: Annotated[str, typer.Option(help="Whose it is, if it is not your own.")] = "",
    as_json: Json = False,
) -> None:
    """Remove a saved filter."""
    from poller.service.fleet import filter_actions

    services = bootstrap.services()
    inventory_database.database(services)
    filter_actions.remove(services, command_actor.of_command(), name, owner)
    render.changed(f"removed filter {name}", "poller.filter.rm/1", {"name": name}, as_json)
