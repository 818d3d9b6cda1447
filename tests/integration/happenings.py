"""Readers of an event's places, and services without a server."""

from __future__ import annotations

import pytest

from poller.bootstrap import Services
from poller.db.record import event_rows as table
from poller.domain.record.event_kinds import Event, EventFilter, Kind
from poller.settings import Settings
from poller.state.cluster import event_stream as stream

DOWN = Event(
    1_800_000_000_000,
    Kind.DEVICE_WENT_DOWN,
    "sw1 is down",
    "sw1",
    "snmp",
    7,
    3,
    {"code": "timeout"},
)


NOWHERE = "redis://127.0.0.1:1/0"


def recorded(services: Services) -> list[Event]:
    return table.recent(services.engine, EventFilter(), 20_000)


def in_stream(services: Services) -> list[Event | None]:
    return [entry.event for entry in stream.newest(services.redis, services.keys, 20_000)]


def without_redis(services: Services, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Return services whose Redis does not respond."""
    monkeypatch.setenv("POLLER_REDIS_URL", NOWHERE)
    return Services(Settings())
