"""`poller demo`: the simulated devices that `poller up --demo` added to the inventory."""

from __future__ import annotations

import typer

from poller import bootstrap
from poller.cli.actions import demo_fleet
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.db.inventory.devices import Device
from poller.presentation import formatting

#: Number of devices that the result names.
_NAMED = 3

app = typer.Typer(no_args_is_help=True, help="The simulated fleet of `poller up --demo`.")


@app.command("clear")
def clear(yes: Yes = False, as_json: render.Json = False) -> None:
    """Remove the simulated devices, and the credentials and sites that came with them."""
    services = bootstrap.services()
    database(services)
    tagged = demo_fleet.tagged(services)
    count = len(tagged.simulated)

    text = f"remove {formatting.counted(count, 'simulated device')}"
    if tagged.others:
        text += f"; {_named(tagged.others)} tagged {demo_fleet.TAG}, too, and not simulated: kept"

    if tagged.others and count:
        confirm(text, count, yes)

    demo_fleet.clear(services)

    body = {"removed": count, "kept": len(tagged.others)}
    then = "poller up" if count else ""
    render.changed(text.replace("remove", "removed", 1), "poller.demo.clear/1", body, as_json, then)


def _named(devices: list[Device]) -> str:
    """`core-1 is`, `core-1, core-2, core-3 and 4 more are`."""
    names = ", ".join(device.name for device in devices[:_NAMED])
    if len(devices) > _NAMED:
        names += f" and {len(devices) - _NAMED:,} more"
    verb = "is" if len(devices) == 1 else "are"
    return f"{names} {verb}"
