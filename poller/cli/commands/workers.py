"""`poller workers`: the workers, their tags, collectors and load, lost ones, and drains."""

from __future__ import annotations

from typing import Annotated

import typer

from poller import bootstrap
from poller.cli.command_tree import Listing
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, plain
from poller.presentation import formatting
from poller.presentation.cluster import workers_json
from poller.state.cluster import overview_reader

app = typer.Typer(cls=Listing, help="Workers: their load, those that were lost, and drains.")

Names = Annotated[list[str], typer.Argument(metavar="NAME...", help="The workers' names.")]


@app.command("list")
def list_(as_json: render.Json = False) -> None:
    """List workers with their tags, collectors, load and last poll; running workers come first."""
    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    items = [item.model_dump() for item in workers_json.workers(view)]
    render.listing(workers_json.SCHEMA, items, _COLUMNS, as_json)

    if not items and not as_json:
        render.note("no worker runs: poller worker, or celery -A poller worker, starts one")


@app.command("drain")
def drain(
    names: Names,
    for_: Annotated[
        str,
        typer.Option("--for", metavar="DURATION", help="Until they take work again, 1m to 30d."),
    ] = "4h",
    reason: Annotated[str, typer.Option(help="Why, for those who look later.")] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also if a queue then has no worker.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait until they have finished.")
    ] = 0.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done.")
    ] = False,
    as_json: render.Json = False,
) -> None:
    """Let workers finish what they have, and take nothing new until the end of the drain.

    Other workers take over. A restart does not end it. Exit code 124 when --wait ran out.
    """
    from poller.cli.actions import worker_draining

    wanted = worker_draining.Wanted(names, for_, reason, force, wait_s)
    worker_draining.drain(wanted, dry_run, as_json)


@app.command("resume")
def resume(names: Names, as_json: render.Json = False) -> None:
    """Let drained workers take work again."""
    from poller.cli.actions import worker_draining

    worker_draining.resume(names, as_json)


def _state(item: Item) -> str:
    """`running`, `drained until 14:00:00Z`, or `lost 3 m 20 s ago`."""
    if item["state"] != "running":
        return f"lost {formatting.age(item['seen_seconds'] * 1000)} ago"
    drain = item["drain"]
    if drain is None:
        return "running"
    verb = "drained" if drain["is_done"] else "draining"
    return f"{verb} until {plain(drain['until'])}"


def _tags(item: Item) -> str:
    """`zone=dmz site=ams`, or `none`."""
    return " ".join(f"{key}={value}" for key, value in item["tags"].items()) or "none"


def _batches(item: Item) -> str:
    """`16 of 16 + 11`: busy slots, and batches that only wait for slow devices."""
    text = f"{item['batches'] - item['lent']} of {item['slots']}"
    return f"{text} + {item['lent']}" if item["lent"] else text


def _polls(item: Item) -> str:
    return formatting.exact(item["polls"])


def _last_poll(item: Item) -> str:
    seconds = item["last_poll_seconds"]
    if seconds is None:
        return "none yet"
    return f"{formatting.age(seconds * 1000)} ago"


def _memory(item: Item) -> str:
    return formatting.size(item["rss_bytes"])


def _queues(item: Item) -> str:
    return str(len(item["queues"]))


def _collectors(item: Item) -> str:
    """Built-in collectors by name alone, plugins with their package and its version."""
    parts = []
    for name, origin in item["collectors"].items():
        is_built_in = origin.startswith("poller ")
        parts.append(name if is_built_in else f"{name} ({origin})")
    return ", ".join(parts)


_COLUMNS = (
    column("WORKER", "name", fit=Fit.WHOLE),
    Column("STATE", _state, fit=Fit.WHOLE),
    column("PID", "pid", right=True, fit=Fit.WHOLE, spare=2),
    Column("TAGS", _tags),
    Column("BATCHES", _batches, right=True, fit=Fit.WHOLE, spare=1),
    Column("POLLS", _polls, right=True, fit=Fit.WHOLE),
    Column("LAST", _last_poll, right=True, fit=Fit.WHOLE),
    Column("MEMORY", _memory, right=True, fit=Fit.WHOLE, spare=3),
    Column("QUEUES", _queues, right=True, fit=Fit.WHOLE, spare=4),
    Column("COLLECTORS", _collectors, fit=Fit.REST),
)
