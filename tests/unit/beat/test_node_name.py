"""The node name of a beat, by which Celery's tools know it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from poller.beat import node_name


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Redis that no other test uses."""
    claims: list[object] = []
    monkeypatch.setattr(node_name, "_claims", claims)
    yield uuid.uuid4().hex
    for claim in claims:
        claim.close()  # type: ignore[attr-defined]


def named(server: str, option: str | None = None) -> str | None:
    service = SimpleNamespace(hostname=option)
    node_name.name_beat(service, server)
    return service.hostname


def test_two_beats_of_a_host_have_different_names(server: str) -> None:
    """The first has Celery's default, which health checks use: None is celerybeat@host."""
    assert named(server) is None
    assert named(server) == f"celerybeat-{os.getpid()}@%h"
    assert named(f"{server}-2") is None, "a beat of another cluster"


def test_a_name_of_the_command_line_is_kept(server: str) -> None:
    """An operator knows best."""
    assert [named(server, "one@host") for _ in range(2)] == ["one@host"] * 2
