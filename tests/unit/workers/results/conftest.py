"""A ledger and sinks that do as a test says; pauses are short."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from poller.db.record import run_ledger
from poller.domain.failures import delivery_backoff
from poller.workers.results import destination_writer
from tests.unit.workers.results.scripted_stores import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    world = World(tmp_path)
    monkeypatch.setattr(run_ledger, "write", lambda _engine, rows: world.ledger.write(rows))
    monkeypatch.setattr(destination_writer, "REFUSED_PAUSE_S", 0.02)
    monkeypatch.setattr(delivery_backoff, "BASE_S", 0.02)
    monkeypatch.setattr(delivery_backoff, "CAP_S", 0.02)
    yield world
    for store in (world.ledger, world.sink, world.second_sink):
        store.open.set()
    for writers_ in world.writers:
        writers_.close(1)
