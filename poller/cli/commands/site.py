"""`poller site`: the sites of devices, and the tags that a worker must have to poll there."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from poller import bootstrap, errors
from poller.cli.arguments import completion
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory import inventory_database
from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.service import command_actor

app = typer.Typer(no_args_is_help=True, help="Where devices are, and which workers may poll them.")

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The site's name.", autocompletion=completion.sites)
]

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("REQUIRES", "requires"),
    column("DEVICES", "devices", right=True),
)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List sites. The first device of a site makes it."""
    from poller.service import site_actions

    services = bootstrap.services()
    inventory_database.database(services)
    found = site_actions.listing(services, command_actor.of_command())
    items = [asdict(site) for site in found]
    render.listing("poller.site.list/1", items, _COLUMNS, as_json)
    if not items and not as_json:
        render.note(
            "no sites yet; the first device makes one: poller device add NAME ADDRESS --site SITE"
        )


@app.command("edit")
def edit(
    name: Name,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="KEY=VALUE",
            help="Tags that its workers must have, instead of all old ones.",
        ),
    ] = None,
    no_requires: Annotated[
        bool, typer.Option("--no-requires", help="Any worker may poll it.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the tags that workers must have to poll a site's devices."""
    from poller.service import site_actions

    if require is None and not no_requires:
        raise errors.InvalidInput("nothing to change", hint="poller site edit --help")

    services = bootstrap.services()
    inventory_database.database(services)
    changed = site_actions.edit(services, inventory_database.author(), name, require or ())
    render.changed(f"changed site {name}", "poller.site/1", asdict(changed), as_json)


@app.command("rm")
def remove(name: Name, yes: Yes = False, as_json: Json = False) -> None:
    """Remove a site without devices."""
    from poller.service import site_actions

    services = bootstrap.services()
    inventory_database.database(services)
    confirm(f"remove site {name}", 1, yes)
    site_actions.remove(services, inventory_database.author(), name)
    render.changed(f"removed site {name}", "poller.site.rm/1", {"removed": 1}, as_json)
