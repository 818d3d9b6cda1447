"""The events of the cluster as lines of `poller up`: a burst is a few lines and a count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from poller import errors
from poller.cli.output.columns import one_line
from poller.state.cluster import event_stream

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.record.event_kinds import Event

#: Events that one read prints.
SHOWN = 5
_EVERY_S = 1.0
_PAGE = 1_000


def start(services: Services, print_line: Callable[[str], None], stop: threading.Event) -> None:
    """Print new events from now on, in a thread of its own: Redis may be silent for seconds."""
    thread = threading.Thread(
        target=_follow, args=(services, print_line, stop), name="events", daemon=True
    )
    thread.start()


def _follow(services: Services, print_line: Callable[[str], None], stop: threading.Event) -> None:
    client = services.redis
    keys = services.keys
    last_id = ""
    while not stop.wait(_EVERY_S):
        try:
            if not last_id:
                newest = event_stream.newest(client, keys, 1)
                last_id = newest[0].id if newest else event_stream.BEGINNING
                continue
            entries = event_stream.after(client, keys, last_id, _PAGE)
        except errors.StoreError:
            continue  # the server is away; its return brings the events

        if entries:
            last_id = entries[-1].id
            for line in lines([entry.event for entry in entries if entry.event]):
                print_line(line)


def lines(events: Sequence[Event]) -> list[str]:
    """The first events as lines, and the number of the others."""
    shown = [one_line(f"{event.kind.value}: {event.message}") for event in events[:SHOWN]]
    if len(events) > SHOWN:
        shown.append(f"and {len(events) - SHOWN:,} more: poller events")
    return shown
