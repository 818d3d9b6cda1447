"""`poller workers`: the workers, their tags, collectors and load, and those that were lost."""

from __future__ import annotations

from typing import Any

from poller import bootstrap
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, Item, column, instant
from poller.domain.record.overview import Overview, Worker
from poller.presentation import formatting, running_workers
from poller.state.cluster import overview_reader


def command(as_json: render.Json = False) -> None:
    """List workers with their tags, collectors, load and last poll; running workers come first."""
    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    items = [_item(worker, view) for worker in view.workers]
    items.sort(key=lambda item: (item["state"] != "running", item["name"]))
    render.listing("poller.workers/1", items, _COLUMNS, as_json)

    if not items and not as_json:
        render.note("no worker runs: poller worker, or celery -A poller worker, starts one")


def _item(worker: Worker, view: Overview) -> dict[str, Any]:
    """The JSON fields of a worker."""
    is_running = running_workers.is_running(worker, view)
    last_poll_ms = view.as_of_ms - worker.polled_ms
    seen_ms = view.as_of_ms - worker.seen_ms

    return {
        "name": view.labels[worker.key],
        "state": "running" if is_running else "lost",
        "pid": worker.pid or None,
        "seen": instant(worker.seen_ms),
        "started": instant(worker.started_ms),
        "last_poll": instant(worker.polled_ms),
        "last_poll_seconds": last_poll_ms // 1000 if worker.polled_ms else None,
        "seen_seconds": seen_ms // 1000,
        "polls": worker.polls,
        "batches": worker.in_flight,
        "slots": worker.slots,
        "lent": worker.lent,
        "rss_bytes": worker.rss_bytes,
        "tags": dict(sorted(worker.tags.items())),
        "collectors": dict(sorted(worker.collectors.items())),
        "queues": sorted(worker.queues),
        "spool_waiting": worker.spool_waiting,
        "spool_dropped": worker.spool_dropped,
        "rate_limit": worker.rate_limit,
        "store_error": worker.store_error,
    }


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
