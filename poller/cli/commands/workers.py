"""`poller workers`: who polls, what each carries and takes, and who was lost."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from poller import bootstrap
from poller.cli.output import render
from poller.cli.output.columns import Column, Fit, column
from poller.domain.record.overview import Overview, Worker
from poller.presentation import formatting, health
from poller.state.cluster import overview_reader


def command(as_json: render.Json = False) -> None:
    """Workers with their tags, collectors, load and last poll; those that run come first."""
    services = bootstrap.services()
    view = overview_reader.read(services.redis, services.keys)
    items = [_item(worker, view) for worker in view.workers]
    items.sort(key=lambda item: (item["state"] != "running", item["name"]))
    render.listing("poller.workers/1", items, _COLUMNS, as_json)
    if not items and not as_json:
        render.note("nobody polls: poller worker, or celery -A poller worker, starts one")


def _item(worker: Worker, view: Overview) -> dict[str, Any]:
    return {
        "name": view.labels[worker.key],
        "state": "running" if health.running(worker, view) else "lost",
        "seen": _instant(worker.seen_ms),
        "started": _instant(worker.started_ms),
        "last_poll": _instant(worker.polled_ms),
        "last_poll_seconds": (view.as_of_ms - worker.polled_ms) // 1000
        if worker.polled_ms
        else None,
        "seen_seconds": (view.as_of_ms - worker.seen_ms) // 1000,
        "polls": worker.polls,
        "batches": worker.in_flight,
        "slots": worker.slots,
        "rss_bytes": worker.rss_bytes,
        "tags": dict(sorted(worker.tags.items())),
        "collectors": dict(sorted(worker.collectors.items())),
        "queues": sorted(worker.queues),
        "spool_waiting": worker.spool_waiting,
        "spool_dropped": worker.spool_dropped,
    }


def _instant(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _state(item: Mapping[str, Any]) -> str:
    if item["state"] == "running":
        return "running"
    return f"lost {formatting.age(item['seen_seconds'] * 1000)} ago"


def _last(item: Mapping[str, Any]) -> str:
    since = item["last_poll_seconds"]
    return "none yet" if since is None else f"{formatting.age(since * 1000)} ago"


def _collectors(item: Mapping[str, Any]) -> str:
    """Names alone for what comes with poller itself; others with their package and its version."""
    return ", ".join(
        name if origin.startswith("poller ") else f"{name} ({origin})"
        for name, origin in item["collectors"].items()
    )


_COLUMNS = (
    column("WORKER", "name", fit=Fit.WHOLE),
    Column("STATE", _state, fit=Fit.WHOLE),
    Column(
        "TAGS",
        lambda item: " ".join(f"{key}={value}" for key, value in item["tags"].items()) or "none",
    ),
    Column(
        "BATCHES",
        lambda item: f"{item['batches']} of {item['slots']}",
        right=True,
        fit=Fit.WHOLE,
        spare=1,
    ),
    Column("POLLS", lambda item: formatting.exact(item["polls"]), right=True, fit=Fit.WHOLE),
    Column("LAST", _last, right=True, fit=Fit.WHOLE),
    Column(
        "MEMORY",
        lambda item: formatting.size(item["rss_bytes"]),
        right=True,
        fit=Fit.WHOLE,
        spare=2,
    ),
    Column("QUEUES", lambda item: str(len(item["queues"])), right=True, fit=Fit.WHOLE, spare=3),
    Column("COLLECTORS", _collectors, fit=Fit.REST),
)
