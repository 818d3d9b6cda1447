"""The node name of a beat, by which Celery's tools know it."""

from __future__ import annotations

import os

import pytest
from celery.signals import beat_init

from poller.beat import scheduler


class Service:
    """The sender of Celery's signal."""

    scheduler = None

    def __init__(self, hostname: str | None) -> None:
        self.hostname = hostname


@pytest.mark.parametrize(
    ("option", "name"), [(None, f"celerybeat-{os.getpid()}@%h"), ("one@host", "one@host")]
)
def test_two_beats_of_a_host_have_different_names(option: str | None, name: str) -> None:
    """With the default of Celery both are celerybeat@host: DuplicateNodenameWarning."""
    assert scheduler.PollScheduler
    service = Service(option)
    beat_init.send(sender=service)
    assert service.hostname == name
