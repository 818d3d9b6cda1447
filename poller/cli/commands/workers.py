"""`poller workers`: the workers, their tags, collectors and load, and those that were lost."""

from __future__ import annotations

from poller import bootstrap
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column
from poller.presentation import formatting
from poller.presentation.cluster import workers_json
from poller.state.cluster import overview_reader


def command(as_json: render.Json = False) -> None:
    """List workers with their tags, collectors, load and last poll; running workers come first."""
    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    items = [item.model_dump() for item in workers_json.workers(view)]
    render.listing(workers_json.SCHEMA, items, _COLUMNS, as_json)

    if not items and not as_json:
        render.note("no worker runs: poller worker, or celery -A poller worker, starts one")


def _state(item: Item) -> str:
    """`running`, or `lost 3 m 20 s ago`."""
    if item["state"] == "running":
        return "running"
    return f"lost {formatting.age(item['seen_seconds'] * 1000)} ago"


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
